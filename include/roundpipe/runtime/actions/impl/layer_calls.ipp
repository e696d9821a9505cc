// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/boundary_place.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/actions/device_places.hpp>
#include <roundpipe/runtime/actions/layer_calls.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe {

ROUNDPIPE_INLINE void LayerCalls::prepare_forward(DeviceAction const& here,
                                                  PreparedLayer& layer) const {
  prepare(here, layer);
  auto const& places = here.places();
  auto const& facts = here.facts(here.action.layer.index());
  layer.call.saving = here.action.kind == ActionKind::recompute;
  layer.call.wants_output = here.action.hands_on_output;
  layer.call.found_level = here.stage().has_backward() ? here.action.save_level : 0;
  layer.tensors.kept = {};
  layer.tensors.saved = {};
  if (layer.call.saving) {
    prepare_saved(here, layer);
  }
  list_boundary(here, facts.boundary, here.action.writes, places.output, layer.tensors.outputs);
  layer.tensors.results.clear();
  if (facts.is_loss && here.stage().kind == StageKind::evaluate) {
    views(layer.tensors.results, facts.results, places_.at(here, here.stage().results));
  }
}

ROUNDPIPE_INLINE void LayerCalls::prepare_backward(DeviceAction const& here,
                                                   PreparedLayer& layer) const {
  prepare(here, layer);
  auto const& places = here.places();
  auto const index = here.action.layer.index();
  auto const& facts = here.facts(index);
  auto& tensors = layer.tensors;
  prepare_saved(here, layer);
  list_gradients(
      here, facts.boundary, here.action.reads, places.output_gradient, tensors.output_gradients);
  tensors.input_gradients.clear();
  if (index > 0) {
    list_gradients(
        here, facts.input, here.action.writes, places.input_gradient, tensors.input_gradients);
  }
  auto const gradients = places_.entry(here, BufferKind::gradients);
  tensors.parameter_gradients.clear();
  for (auto const& place : blocks_.places[index]) {
    tensors.parameter_gradients.push_back(blocks_.trains(place.use)
                                              ? tensor(gradients,
                                                       here.place_of(place.use).gradients,
                                                       blocks_.block_of(place.use).gradient,
                                                       place.tensor)
                                              : DeviceTensor{});
  }
  for (auto const use : blocks_.layer_uses[index]) {
    if (blocks_.trains(use) && here.action.first) {
      layer.zeroed.push_back(
          gradients.subspan(here.place_of(use).gradients, blocks_.block_of(use).gradient.bytes()));
    }
    if (blocks_.trains(use) && here.action.last) {
      list_rounded(here.place_of(use), blocks_.block_of(use), gradients, layer);
    }
  }
}

ROUNDPIPE_INLINE void LayerCalls::list_boundary(DeviceAction const& here,
                                                TensorTable const& boundary,
                                                std::vector<Buffer> const& buffers,
                                                BoundaryPlace const& place,
                                                std::vector<DeviceTensor>& list) const {
  auto const resident = places_.resident(here, buffers, BufferKind::checkpoint);
  if (!resident.empty()) {
    return views(list, boundary, resident);
  }
  auto const block = places_.at(here, place);
  if (place.apart.empty()) {
    return views(list, boundary, block);
  }
  views(list, boundary.first(place.in_block(boundary.size())), block);
  list_apart(here, boundary, place, list);
}

ROUNDPIPE_INLINE void LayerCalls::list_gradients(DeviceAction const& here,
                                                 TensorTable const& boundary,
                                                 std::vector<Buffer> const& buffers,
                                                 BoundaryPlace const& place,
                                                 std::vector<DeviceTensor>& list) const {
  auto const resident = places_.resident(here, buffers, BufferKind::boundary_gradient);
  if (!resident.empty()) {
    return gradient_views(list, boundary, resident);
  }
  auto const block = places_.at(here, place);
  if (place.apart.empty()) {
    return gradient_views(list, boundary, block);
  }
  gradient_views(list, boundary.first(place.in_block(boundary.size())), block);
  list_apart(here, boundary, place, list);
}

ROUNDPIPE_INLINE void LayerCalls::list_apart(DeviceAction const& here,
                                             TensorTable const& boundary,
                                             BoundaryPlace const& place,
                                             std::vector<DeviceTensor>& list) const {
  for (std::size_t t = 0; t < place.apart.size(); ++t) {
    auto const& spec = boundary[place.in_block(boundary.size()) + t];
    auto const memory = places_.at(here, place.apart[t]);
    list.push_back(memory.empty() ? DeviceTensor{}  // an integer has no gradient
                                  : DeviceTensor{memory, spec.shape, spec.dtype});
  }
}

ROUNDPIPE_INLINE void LayerCalls::prepare_saved(DeviceAction const& here,
                                                PreparedLayer& layer) const {
  auto const kept = here.kept_bytes();
  auto const rest = here.facts(here.action.layer.index()).footprint.saved_bytes - kept;
  layer.tensors.kept =
      kept > 0 ? places_.entry(here, BufferKind::saves).subspan(0, kept) : DeviceBytes{};
  layer.tensors.saved =
      rest > 0 ? places_.at(here, here.places().saved).subspan(0, rest) : DeviceBytes{};
}

ROUNDPIPE_INLINE void LayerCalls::prepare(DeviceAction const& here, PreparedLayer& layer) const {
  auto const index = here.action.layer.index();
  auto const& facts = here.facts(index);
  auto const& places = here.places();
  auto const& call = here.call();
  layer.call = {};
  layer.call.shape = here.shaped().model.capacity;
  layer.call.random = {call.seed,
                       call.number,
                       static_cast<std::uint32_t>(index),
                       static_cast<std::uint32_t>(call.number_of(here.micro_batch())),
                       0};
  layer.call.gradient_scale = call.gradient_scale;
  layer.call.evaluating = call.evaluating;
  layer.zeroed.clear();
  layer.rounded.clear();
  auto& tensors = layer.tensors;
  tensors.tables = &facts;
  tensors.parameters.clear();
  for (auto const& place : blocks_.places[index]) {
    auto const parameters = places_.parameters(here, blocks_.use(place.use).block);
    tensors.parameters.push_back(parameters.empty()  // a backward that reads none
                                     ? DeviceTensor{}
                                     : tensor(parameters,
                                              here.place_of(place.use).parameters,
                                              blocks_.block_of(place.use).master,
                                              place.tensor));
  }
  list_boundary(here, facts.input, here.action.reads, places.input, tensors.inputs);
  views(tensors.side_inputs, facts.side_inputs, places_.at(here, places.side_inputs));
  tensors.workspace = places_.at(here, places.workspace);
  tensors.loss = {};
  if (facts.is_loss) {
    auto const loss = places_.at(here, here.stage().loss);
    tensors.loss = {reinterpret_cast<double*>(loss.device_pointer()), 1};
  }
}

ROUNDPIPE_INLINE void LayerCalls::list_rounded(UsePlace const& place,
                                               ParameterBlock const& block,
                                               DeviceBytes gradients,
                                               PreparedLayer& layer) {
  for (std::size_t t = 0; t < block.gradient.size(); ++t) {
    if (auto const rounded = block.rounded_tensors[t]) {
      layer.rounded.push_back({tensor(gradients, place.rounded, block.rounded, *rounded),
                               tensor(gradients, place.gradients, block.gradient, t).as<float>()});
    }
  }
}

}  // namespace roundpipe
