// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/save_copies.hpp>

#include <cstddef>
#include <optional>
#include <utility>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void SaveCopies::begin_slot(SlotId id) {
  due_.clear();
  uploaded_ = 0;
  used_ = 0;
  for (std::size_t m = 0; m < call_.micro_batches_per_round(); ++m) {
    for (auto const& pass : call_.stage_of(id).passes(call_.slot(id).round, m)) {
      if (is_first_reader(pass)) {
        due_.push_back({pass.layer, m, pass.level});
      }
    }
  }
  for (std::size_t i = 0; i < call_.input.buffering.saves; ++i) {
    add_up(id, 0);
  }
}

ROUNDPIPE_INLINE void SaveCopies::use_entry(Action& action, Pass const& pass) {
  if (pass.writes.has(PassData::kept)) {
    Ring const ring{BufferKind::saves, action.lane.device, call_.ring_index(action.slot)};
    written_ = call_.graph.acquire(ring, call_.input.buffering.saves, action);
    action.writes.push_back(*written_);
  }
  if (pass.reads.has(PassData::kept)) {
    used_ += is_first_reader(pass) ? 1 : 0;
    auto const& save = due_[used_ - 1];
    wait_for(action, save.made);
    action.reads.push_back(save.entry);
  }
}

ROUNDPIPE_INLINE void SaveCopies::finish_pass(ActionId id, Pass const& pass) {
  auto const& compute = call_.graph[id];
  if (pass.writes.has(PassData::kept)) {
    Save const save{pass.layer, compute.micro_batch.index(), pass.level, *written_, id};
    if (pass.layer + 1 == call_.stage_of(compute.slot).range.end()) {
      last_ = save;
    } else {
      add_down(compute.slot, save, save.micro_batch);
    }
  } else if (pass.reads.has(PassData::kept) && pass.kind == PassKind::backward) {
    add_up(compute.slot, compute.micro_batch.index() + 1);
  }
}

ROUNDPIPE_INLINE void SaveCopies::finish_micro_batch(SlotId id, std::size_t m) {
  if (auto const save = std::exchange(last_, std::nullopt)) {
    add_down(id, *save, m + 1);
  }
}

ROUNDPIPE_INLINE void SaveCopies::add_down(SlotId id, Save const& save, std::size_t w) {
  auto down = make(id, ActionKind::download_save, LaneKind::save_down, save);
  wait_for(down, save.made);
  wait_for(down, call_.last_down(id, w));
  wait_for(down, call_.last_chunk_down(id, w));
  down.reads.push_back(save.entry);
  call_.write_kept(down, BufferKind::offloaded_saves, save.layer);
  call_.graph.add(std::move(down));
}

ROUNDPIPE_INLINE Action SaveCopies::make(SlotId id,
                                         ActionKind kind,
                                         LaneKind lane,
                                         Save const& save) const {
  auto action = call_.make(id, kind, lane, save.micro_batch);
  action.layer = LayerId(save.layer);
  action.save_level = save.level;
  auto const& set = call_.stage_of(id).working_set.of_round(action.round.index());
  action.bytes = set.bytes(save.layer, save.micro_batch);
  return action;
}

ROUNDPIPE_INLINE void SaveCopies::add_up(SlotId id, std::size_t m) {
  if (uploaded_ == due_.size()) {
    return;
  }
  auto& save = due_[uploaded_++];
  auto up = make(id, ActionKind::upload_save, LaneKind::save_up, save);
  call_.read_kept(up, BufferKind::offloaded_saves, save.layer);
  if (m < call_.micro_batches_per_round()) {
    wait_for(up, call_.last_up(id, m + 1));
  }
  if (uploaded_ == 1 && call_.has_parameter_windows()) {
    wait_for(up, call_.last_parameters_up(id));
  }
  Ring const ring{BufferKind::saves, up.lane.device, call_.ring_index(id)};
  save.entry = call_.graph.acquire(ring, call_.input.buffering.saves, up);
  up.writes.push_back(save.entry);
  save.made = call_.graph.add(std::move(up));
  call_.work_of(id).save_up[save.micro_batch] = save.made;
}

}  // namespace detail

}  // namespace roundpipe
