// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/actions/device_copies.hpp>
#include <roundpipe/runtime/actions/device_places.hpp>
#include <roundpipe/runtime/state/boundary_store.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>

#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE void DeviceCopies::list(DeviceAction const& here, CopyList& list) const {
  list.clear();
  switch (here.action.kind) {
    case ActionKind::upload_parameters:
      return upload_parameters(here, list);
    case ActionKind::upload_activation:
      return upload_activation(here, list);
    case ActionKind::upload_gradient:
      return upload_gradient(here, list);
    case ActionKind::download_activation:
      return download_activation(here, list);
    case ActionKind::send_boundary:
      return send_boundary(here, list);
    case ActionKind::upload_save:
      return upload_save(here, list);
    case ActionKind::download_save:
      return download_save(here, list);
    case ActionKind::download_gradients:
      return download_gradients(here, list);
    default:
      throw Error(Errc::unsupported, "a host's action stands on a device's lane");
  }
}

ROUNDPIPE_INLINE void DeviceCopies::upload_parameters(DeviceAction const& here,
                                                      CopyList& list) const {
  for (auto const& piece : here.action.pieces) {
    auto const& block = blocks().block_of(piece.use);
    auto const offset = block.master.offset(piece.tensor) + piece.offset;
    auto const base = here.place_of(piece.use).parameters;
    auto const id = blocks().use(piece.use).block;
    auto const master = parameters_.master(id, here.call().version);
    list.uploads.push_back({places_.parameters(here, id).subspan(base + offset, piece.bytes),
                            source(master, offset, piece.bytes)});
  }
}

ROUNDPIPE_INLINE void DeviceCopies::download_gradients(DeviceAction const& here,
                                                       CopyList& list) const {
  auto const from = places_.entry(here, BufferKind::gradients);
  for (auto const& piece : here.action.pieces) {
    auto const& block = blocks().block_of(piece.use);
    auto const& place = here.place_of(piece.use);
    auto const rounded = block.rounded_tensors[piece.tensor];
    auto const base = rounded ? place.rounded + block.rounded.offset(*rounded)
                              : place.gradients + block.gradient.offset(piece.tensor);
    auto const landing = parameters_.landing(piece.use, here.action.round, here.call().iteration);
    list.downloads.push_back(
        {landing.subspan(block.master.offset(piece.tensor) + piece.offset, piece.bytes),
         from.subspan(base + piece.offset, piece.bytes)});
  }
}

ROUNDPIPE_INLINE void DeviceCopies::upload_activation(DeviceAction const& here,
                                                      CopyList& list) const {
  auto const& stage = here.stage();
  for (auto const& buffer : here.action.reads) {
    if (buffer.ring.kind == BufferKind::checkpoint) {
      auto const reader = boundaries_.layer_of(buffer.ring, here.action.round) + 1;
      auto const bytes = here.facts(reader).input.content_bytes();
      auto const& place = stage.layers[reader - stage.range.first].input;
      list.uploads.push_back(
          {places_.at(here, place).subspan(0, bytes), source(boundary(here, buffer), 0, bytes)});
    }
  }
  auto const& batch = here.shaped().batch;
  for (std::size_t i = 0; i < stage.range.count; ++i) {
    auto const layer = stage.range.first + i;
    auto const& table = here.facts(layer).side_inputs;
    for (std::size_t t = 0; t < table.size(); ++t) {
      auto const bytes = table[t].bytes();
      auto const to = places_.at(here, stage.layers[i].side_inputs);
      list.uploads.push_back({to.subspan(table.offset(t), bytes),
                              source(here.call().batch[here.micro_batch()],
                                     batch.tensors.offset(batch.of_layer[layer][t]),
                                     bytes)});
    }
  }
}

ROUNDPIPE_INLINE void DeviceCopies::upload_gradient(DeviceAction const& here,
                                                    CopyList& list) const {
  auto const& stage = here.stage();
  auto const bytes = gradient_bytes(here.facts(stage.range.end() - 1).boundary);
  list.uploads.push_back({places_.at(here, stage.layers.back().output_gradient).subspan(0, bytes),
                          source(boundary(here, here.action.reads.front()), 0, bytes)});
}

ROUNDPIPE_INLINE void DeviceCopies::upload_save(DeviceAction const& here, CopyList& list) const {
  auto const bytes = here.kept_bytes();
  list.uploads.push_back({places_.entry(here, BufferKind::saves).subspan(0, bytes),
                          source(boundary(here, here.action.reads.front()), 0, bytes)});
}

ROUNDPIPE_INLINE void DeviceCopies::download_save(DeviceAction const& here, CopyList& list) const {
  auto const bytes = here.kept_bytes();
  list.downloads.push_back({boundary(here, here.action.writes.front()).first(bytes),
                            places_.entry(here, BufferKind::saves).subspan(0, bytes)});
}

ROUNDPIPE_INLINE void DeviceCopies::send_boundary(DeviceAction const& here, CopyList& list) const {
  auto const kind = here.action.writes.front().ring.kind;
  auto const& facts = here.facts(here.action.layer.index());
  auto const of_output = kind == BufferKind::checkpoint;
  auto const bytes = of_output ? facts.boundary.content_bytes() : gradient_bytes(facts.input);
  auto from = places_.resident(here, here.action.reads, kind);
  if (from.empty()) {
    from = places_.at(here, of_output ? here.places().output : here.places().input_gradient);
  }
  auto const to = places_.resident(here, here.action.writes, kind);
  list.sends.push_back({to.subspan(0, bytes), from.subspan(0, bytes)});
}

ROUNDPIPE_INLINE void DeviceCopies::download_activation(DeviceAction const& here,
                                                        CopyList& list) const {
  auto const& stage = here.stage();
  auto const& call = here.call();
  auto const m = here.micro_batch();
  auto const to_host = [&](Place const& place, Bytes bytes, HostBytes to) {
    list.downloads.push_back({to.first(bytes), places_.at(here, place).subspan(0, bytes)});
  };
  for (auto const& buffer : here.action.writes) {
    switch (buffer.ring.kind) {
      case BufferKind::checkpoint: {
        auto const layer = boundaries_.layer_of(buffer.ring, here.action.round);
        to_host(stage.layers[layer - stage.range.first].output,
                here.facts(layer).boundary.content_bytes(),
                boundary(here, buffer));
        break;
      }
      case BufferKind::boundary_gradient:
        to_host(stage.layers.front().input_gradient,
                gradient_bytes(here.facts(stage.range.first).input),
                boundary(here, buffer));
        break;
      case BufferKind::loss:
        to_host(stage.loss, sizeof(double), call.losses[m]);
        break;
      case BufferKind::results:
        to_host(stage.results, here.shaped().model.layers.back().results.bytes(), call.results[m]);
        break;
      default:
        break;
    }
  }
}

}  // namespace roundpipe
