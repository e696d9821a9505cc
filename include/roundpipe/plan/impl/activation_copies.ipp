// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/plan/activation_copies.hpp>
#include <roundpipe/plan/call_context.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void ActivationCopies::add_up(SlotId id, std::size_t w) {
  auto const ahead = in_flight();  // this micro-batch and those behind it
  auto const end = std::min(w + ahead, call_.micro_batches_per_round());
  for (auto m = w == 0 ? 0 : w + ahead - 1; m < end; ++m) {
    add_input(id, m);
    add_gradient(id, m);
  }
}

ROUNDPIPE_INLINE void ActivationCopies::add_down(SlotId id, std::size_t m) {
  auto const& stage = call_.stage_of(id);
  auto& work = call_.work_of(id);
  auto action = call_.make(id, ActionKind::download_activation, LaneKind::activation_down, m);
  action.reads.push_back(work.entries_out[m].value());
  wait_for(action, work.last_compute[m]);
  for (auto const& kept : stage.kept) {
    if (call_.way(action, BufferKind::checkpoint, kept.boundary).through_host) {
      call_.write_kept(action, BufferKind::checkpoint, kept.boundary);
      action.bytes += align_up(kept.place.bytes);
    }
  }
  if (stage.layers.front().input_gradient.area == Area::activations_out &&
      call_.way(action, BufferKind::boundary_gradient, stage.range.first - 1).through_host) {
    call_.write_kept(action, BufferKind::boundary_gradient, stage.range.first - 1);
    action.bytes += align_up(stage.layers.front().input_gradient.bytes);
  }
  if (stage.has_loss()) {
    action.writes.push_back({{BufferKind::loss, DeviceId::none(), m}, 0});
    action.bytes += align_up(stage.loss.bytes);
    if (stage.kind == StageKind::evaluate) {
      action.writes.push_back({{BufferKind::results, DeviceId::none(), m}, 0});
      action.bytes += align_up(stage.results.bytes);
    }
  }
  if (!action.writes.empty()) {  // else all of it goes to other devices
    work.activation_down[m] = call_.graph.add(std::move(action));
  }
}

ROUNDPIPE_INLINE void ActivationCopies::add_sent(SlotId id, std::size_t m, Pass const& pass) {
  auto const& work = call_.work_of(id);
  for (auto const& access : boundary_accesses(call_.stage_of(id), pass)) {
    if (!access.writes) {
      continue;
    }
    auto action = call_.make(id, ActionKind::send_boundary, LaneKind::peer, m);
    action.layer = LayerId(pass.layer);
    action.bytes = align_up(access.place.bytes);
    auto const& way = call_.way(action, access.kind, access.layer);
    for (auto const& ring : way.sent) {
      auto send = action;
      if (way.own) {
        call_.read_kept(send, access.kind, access.layer, way.own);
      } else {
        send.reads.push_back(work.entries_out[m].value());
        wait_for(send, work.last_compute[m]);
      }
      call_.write_kept(send, access.kind, access.layer, ring);
      call_.graph.add(std::move(send));
    }
  }
}

ROUNDPIPE_INLINE void ActivationCopies::add_input(SlotId id, std::size_t m) {
  auto const& stage = call_.stage_of(id);
  auto action = make_up(id, ActionKind::upload_activation, m);
  for (auto const& layer : stage.layers) {
    action.bytes += layer.side_inputs.bytes;
  }
  if (action.bytes > 0) {
    action.reads.push_back({{BufferKind::side_input, DeviceId::none(), m}, 0});
  }
  for (std::size_t i = 0; i < stage.range.count; ++i) {
    auto const& input = stage.layers[i].input;
    auto const boundary = stage.range.first + i - 1;
    if (input.area == Area::activations_in && input.bytes > 0 &&
        !call_.way(action, BufferKind::checkpoint, boundary).read_by(action.stage)) {
      action.bytes += input.bytes;
      call_.read_kept(action, BufferKind::checkpoint, boundary);
    }
  }
  if (action.bytes > 0) {
    call_.work_of(id).activation_up[m] = add_to_entry(std::move(action));
  }
}

ROUNDPIPE_INLINE void ActivationCopies::add_gradient(SlotId id, std::size_t m) {
  auto const& stage = call_.stage_of(id);
  auto const& gradient = stage.layers.back().output_gradient;
  auto const boundary = stage.range.end() - 1;
  auto action = make_up(id, ActionKind::upload_gradient, m);
  if (gradient.area == Area::activations_in && gradient.bytes > 0 &&
      !call_.way(action, BufferKind::boundary_gradient, boundary).read_by(action.stage)) {
    action.bytes = gradient.bytes;
    call_.read_kept(action, BufferKind::boundary_gradient, boundary);
    call_.work_of(id).gradient_up[m] = add_to_entry(std::move(action));
  }
}

ROUNDPIPE_INLINE Action ActivationCopies::make_up(SlotId id, ActionKind kind, std::size_t m) const {
  auto action = call_.make(id, kind, LaneKind::activation_up, m);
  wait_for(action, call_.compute_before(id, m, in_flight()));
  return action;
}

ROUNDPIPE_INLINE ActionId ActivationCopies::add_to_entry(Action action) {
  auto& entry = call_.work_of(action.slot).entries_in[action.micro_batch.index()];
  action.writes.push_back(call_.acquire_once(
      entry, BufferKind::activations_in, in_flight(), action, call_.ring_index(action.slot)));
  return call_.graph.add(std::move(action));
}

}  // namespace detail

}  // namespace roundpipe
