// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Turns a device's actions into copies and layer calls on its streams.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/parameter_store.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace roundpipe {

/// Enqueues the actions of devices' lanes. It owns the devices' arenas.
template <class Model, Backend B, class Store>
class DeviceActions {
 public:
  using Stream = typename B::Stream;

  /// Takes each device's arena from \p backend. The other arguments must outlive this.
  DeviceActions(Model const& model,
                B& backend,
                std::size_t devices,
                DeviceMemoryPlan const& memory,
                Store const& parameters,
                BoundaryStore<B> const& boundaries)
      : model_(model),
        memory_(memory),
        parameters_(parameters),
        boundaries_(boundaries),
        tensors_(devices) {
    for (std::size_t d = 0; d < devices; ++d) {
      arenas_.push_back(backend.allocate_device(DeviceId(d), memory.bytes));
    }
  }

  /// Each device's memory, which holds nothing while no run is under way.
  [[nodiscard]] std::vector<DeviceBytes> arenas() const {
    std::vector<DeviceBytes> arenas;
    for (auto const& arena : arenas_) {
      arenas.push_back(arena.bytes());
    }
    return arenas;
  }

  /// Enqueues action \p id of \p run. Called by one thread a device.
  void issue(GraphRun<B>& run, ActionId id, Stream& stream, DeviceId device) {
    Issue const here{run, run.program()[id], stream, device};
    switch (here.action.kind) {
      case ActionKind::upload_parameters:
        return upload_parameters(here);
      case ActionKind::upload_activation:
        return upload_activation(here);
      case ActionKind::upload_gradient:
        return upload_gradient(here);
      case ActionKind::forward:
      case ActionKind::recompute:
        return forward(here);
      case ActionKind::backward:
        return backward(here);
      case ActionKind::download_activation:
        return download_activation(here);
      case ActionKind::download_gradients:
        return download_gradients(here);
      default:
        throw Error(Errc::unsupported, "a host's action stands on a device's lane");
    }
  }

 private:
  struct Issue {
    GraphRun<B>& run;
    Action const& action;
    Stream& stream;
    DeviceId device;

    [[nodiscard]] CallData const& call() const { return run.call(); }
    [[nodiscard]] StageLayout const& stage() const { return call().stages[action.stage.index()]; }
    [[nodiscard]] std::size_t micro_batch() const {
      return action.round.index() * call().micro_batches_per_round + action.micro_batch.index();
    }
    [[nodiscard]] ShapedModel const& shaped() const { return *call().shapes[micro_batch()]; }
    [[nodiscard]] LayerFacts const& facts(std::size_t layer) const {
      return shaped().model.layers[layer];
    }
  };

  // Addresses.

  [[nodiscard]] DeviceBytes arena(DeviceId device) const { return arenas_[device.index()].bytes(); }

  /// The entry of a device's ring that the action uses; empty when it uses none.
  [[nodiscard]] DeviceBytes entry(Issue const& here, BufferKind kind) const {
    auto const* const buffer = find_buffer(here.action, kind);
    if (buffer == nullptr) {
      return {};
    }
    auto const& ring = memory_.ring(kind);
    auto const position = (here.run.ring_base(buffer->ring) + buffer->sequence) % ring.count;
    return arena(here.device).subspan(ring.offset + position * ring.entry_bytes, ring.entry_bytes);
  }

  [[nodiscard]] DeviceBytes at(Issue const& here, Place const& place) const {
    switch (place.area) {
      case Area::activations_in:
        return part(entry(here, BufferKind::activations_in), place);
      case Area::activations_out:
        return part(entry(here, BufferKind::activations_out), place);
      case Area::scratch:
        return part(arena(here.device).subspan(memory_.scratch_offset, memory_.scratch_bytes),
                    place);
      case Area::none:
        break;
    }
    return {};
  }
  [[nodiscard]] static DeviceBytes part(DeviceBytes area, Place const& place) {
    return place.bytes == 0 ? DeviceBytes{} : area.subspan(place.offset, place.bytes);
  }

  /// The host's entry of a boundary that the action reads or writes.
  [[nodiscard]] HostBytes boundary(Issue const& here, Buffer const& buffer) const {
    return boundaries_.entry(buffer.ring, here.run.ring_base(buffer.ring) + buffer.sequence);
  }

  [[nodiscard]] UsePlace const& use_place(StageLayout const& stage, BlockUseId use) const {
    std::size_t i = 0;
    while (stage.uses[i].use != use) {
      ++i;
    }
    return stage.uses[i];
  }

  // Copies.

  void upload_parameters(Issue const& here) const {
    auto const to = entry(here, BufferKind::parameters);
    for (auto const& piece : here.action.pieces) {
      auto const& block = blocks().block_of(piece.use);
      auto const offset = block.master.offset(piece.tensor) + piece.offset;
      auto const base = use_place(here.stage(), piece.use).parameters;
      auto const master = parameters_.master(blocks().use(piece.use).block, here.call().version);
      here.stream.copy(to.subspan(base + offset, piece.bytes),
                       as_source(master, offset, piece.bytes));
    }
  }

  void download_gradients(Issue const& here) const {
    auto const from = entry(here, BufferKind::gradients);
    for (auto const& piece : here.action.pieces) {
      auto const& block = blocks().block_of(piece.use);
      auto const& place = use_place(here.stage(), piece.use);
      auto const rounded = place.rounded_tensor[piece.tensor];
      auto const base = rounded == UsePlace::not_rounded
                            ? place.gradients + block.gradient.offset(piece.tensor)
                            : place.rounded + place.rounded_table.offset(rounded);
      auto const landing = parameters_.landing(piece.use, here.call().iteration);
      here.stream.copy(
          landing.subspan(block.master.offset(piece.tensor) + piece.offset, piece.bytes),
          DeviceSpan<std::byte const>(from.subspan(base + piece.offset, piece.bytes)));
    }
  }

  void upload_activation(Issue const& here) const {
    auto const& stage = here.stage();
    for (auto const& buffer : here.action.reads) {
      if (buffer.ring.kind == BufferKind::checkpoint) {
        auto const bytes = here.facts(stage.range.first).input.bytes();
        here.stream.copy(at(here, stage.layers.front().input).subspan(0, bytes),
                         as_source(boundary(here, buffer), 0, bytes));
      }
    }
    auto const& batch = here.shaped().batch;
    for (std::size_t i = 0; i < stage.range.count; ++i) {
      auto const layer = stage.range.first + i;
      auto const& table = here.facts(layer).side_inputs;
      for (std::size_t t = 0; t < table.size(); ++t) {
        auto const bytes = table[t].bytes();
        here.stream.copy(at(here, stage.layers[i].side_inputs).subspan(table.offset(t), bytes),
                         as_source(here.call().batch[here.micro_batch()],
                                   batch.tensors.offset(batch.of_layer[layer][t]),
                                   bytes));
      }
    }
  }

  void upload_gradient(Issue const& here) const {
    auto const& stage = here.stage();
    auto const bytes = gradient_bytes(here.facts(stage.range.end() - 1).boundary);
    here.stream.copy(at(here, stage.layers.back().output_gradient).subspan(0, bytes),
                     as_source(boundary(here, here.action.reads.front()), 0, bytes));
  }

  void download_activation(Issue const& here) const {
    auto const& stage = here.stage();
    auto const& call = here.call();
    auto const m = here.micro_batch();
    auto const to_host = [&](Place const& place, Bytes bytes, HostBytes to) {
      here.stream.copy(to.first(bytes),
                       DeviceSpan<std::byte const>(at(here, place).subspan(0, bytes)));
    };
    auto kept = stage.kept.begin();
    for (auto const& buffer : here.action.writes) {
      switch (buffer.ring.kind) {
        case BufferKind::checkpoint:
          to_host(kept->place, here.facts(kept->boundary).boundary.bytes(), boundary(here, buffer));
          ++kept;
          break;
        case BufferKind::boundary_gradient:
          to_host(stage.layers.front().input_gradient,
                  gradient_bytes(here.facts(stage.range.first).input),
                  boundary(here, buffer));
          break;
        case BufferKind::loss:
          to_host(stage.loss, sizeof(double), call.losses[m]);
          break;
        case BufferKind::results:
          to_host(
              stage.results, here.shaped().model.layers.back().results.bytes(), call.results[m]);
          break;
        default:
          break;
      }
    }
  }

  // Layers.

  void forward(Issue const& here) {
    auto const& places = places_of(here);
    auto const& facts = here.facts(here.action.layer.index());
    auto& tensors = common_tensors(here);
    auto call = layer_call(here);
    call.saving = here.action.kind == ActionKind::recompute;
    tensors.saved = call.saving ? at(here, places.saved) : DeviceBytes{};
    views(tensors.outputs, facts.boundary, at(here, places.output));
    tensors.results.clear();
    if (facts.is_loss && here.stage().kind == StageKind::evaluate) {
      views(tensors.results, facts.results, at(here, here.stage().results));
    }
    ForwardContext<Stream> context(here.stream, call, tensors);
    model_.visit(here.action.layer,
                 [&]<Layer<Stream> L>(L const& layer) { layer.forward(context); });
  }

  void backward(Issue const& here) {
    auto const& places = places_of(here);
    auto const layer = here.action.layer.index();
    auto const& facts = here.facts(layer);
    auto& tensors = common_tensors(here);
    auto const call = layer_call(here);
    tensors.saved = at(here, places.saved);
    gradient_views(tensors.output_gradients, facts.boundary, at(here, places.output_gradient));
    if (layer > 0) {
      gradient_views(tensors.input_gradients, facts.input, at(here, places.input_gradient));
    } else {
      tensors.input_gradients.clear();
    }
    auto const gradients = entry(here, BufferKind::gradients);
    if (here.action.first) {
      for (auto const use : blocks().layer_uses[layer]) {
        if (blocks().trains(use)) {
          here.stream.fill(gradients.subspan(use_place(here.stage(), use).gradients,
                                             blocks().block_of(use).gradient.bytes()),
                           std::byte{0});
        }
      }
    }
    tensors.parameter_gradients.clear();
    for (auto const& place : blocks().places[layer]) {
      tensors.parameter_gradients.push_back(
          blocks().trains(place.use) ? tensor(gradients,
                                              use_place(here.stage(), place.use).gradients,
                                              blocks().block_of(place.use).gradient,
                                              place.tensor)
                                     : DeviceTensor{});
    }
    BackwardContext<Stream> context(here.stream, call, tensors);
    model_.visit(here.action.layer, [&]<Layer<Stream> L>(L const& l) { l.backward(context); });
    if (here.action.last) {
      round_gradients(here, gradients);
    }
  }

  /// Rounds the layer's gradients, which are complete, to their declared types.
  void round_gradients(Issue const& here, DeviceBytes gradients) const {
    for (auto const use : blocks().layer_uses[here.action.layer.index()]) {
      auto const& place = use_place(here.stage(), use);
      auto const& wide = blocks().block_of(use).gradient;
      for (std::size_t t = 0; t < wide.size(); ++t) {
        auto const rounded = place.rounded_tensor[t];
        if (rounded == UsePlace::not_rounded || !place.trains) {
          continue;
        }
        auto const to = tensor(gradients, place.rounded, place.rounded_table, rounded);
        auto const from = tensor(gradients, place.gradients, wide, t).template as<float>();
        if (to.dtype() == DType::f16) {
          here.stream.round(to.template as<Float16>(), from);
        } else {
          here.stream.round(to.template as<BFloat16>(), from);
        }
      }
    }
  }

  /// The tensors that forward and backward both see. The lists are the issuing thread's own.
  [[nodiscard]] LayerTensors& common_tensors(Issue const& here) {
    auto& tensors = tensors_[here.device.index()];
    auto const& places = places_of(here);
    auto const layer = here.action.layer.index();
    auto const& facts = here.facts(layer);
    auto const parameters = entry(here, BufferKind::parameters);
    tensors.parameters.clear();
    for (auto const& place : blocks().places[layer]) {
      tensors.parameters.push_back(tensor(parameters,
                                          use_place(here.stage(), place.use).parameters,
                                          blocks().block_of(place.use).master,
                                          place.tensor));
    }
    views(tensors.inputs, facts.input, at(here, places.input));
    views(tensors.side_inputs, facts.side_inputs, at(here, places.side_inputs));
    tensors.workspace = at(here, places.workspace);
    tensors.loss = {};
    if (facts.is_loss) {
      tensors.loss = {reinterpret_cast<double*>(at(here, here.stage().loss).device_pointer()), 1};
    }
    return tensors;
  }

  [[nodiscard]] LayerCall layer_call(Issue const& here) const {
    auto const& call = here.call();
    LayerCall result;
    result.shape = here.shaped().model.capacity;
    result.random = {call.seed,
                     call.number,
                     static_cast<std::uint32_t>(here.action.layer.index()),
                     static_cast<std::uint32_t>(here.micro_batch()),
                     0};
    result.gradient_scale = call.gradient_scale;
    result.evaluating = call.evaluating;
    return result;
  }

  [[nodiscard]] LayerPlaces const& places_of(Issue const& here) const {
    auto const& stage = here.stage();
    return stage.layers[here.action.layer.index() - stage.range.first];
  }

  [[nodiscard]] static DeviceTensor tensor(DeviceBytes entry,
                                           Bytes base,
                                           TensorTable const& table,
                                           std::size_t t) {
    return {
        entry.subspan(base + table.offset(t), table[t].bytes()), table[t].shape, table[t].dtype};
  }
  [[nodiscard]] static HostSpan<std::byte const> as_source(HostBytes memory,
                                                           Bytes offset,
                                                           Bytes bytes) {
    return memory.subspan(offset, bytes);
  }
  [[nodiscard]] ParameterBlocks const& blocks() const { return parameters_.blocks(); }

  Model const& model_;
  DeviceMemoryPlan const& memory_;
  Store const& parameters_;
  BoundaryStore<B> const& boundaries_;
  std::vector<decltype(std::declval<B&>().allocate_device(DeviceId{}, Bytes{}))> arenas_;
  std::vector<LayerTensors> tensors_;  // by device
};

}  // namespace roundpipe
