// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/pass_actions.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/stage_compute.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE void StageCompute::add(SlotId id, std::size_t m, AfterPass const& after) {
  auto const& stage = call_.stage_of(id);
  auto const passes = stage.passes(call_.slot(id).round, m);
  auto const last_writer = std::find_if(
      passes.rbegin(), passes.rend(), [&](Pass const& pass) { return writes_entry(id, m, pass); });
  for (auto pass = passes.begin(); pass != passes.end(); ++pass) {
    pass->runs_backward() ? add_backward(id, m, *pass) : add_forward(id, m, *pass);
    if (after) {
      after(*pass, pass + 1 == last_writer.base());
    }
  }
}

ROUNDPIPE_INLINE bool StageCompute::writes_entry(SlotId id, std::size_t m, Pass const& pass) const {
  auto const& stage = call_.stage_of(id);
  auto const accesses = boundary_accesses(stage, pass);
  auto const round = call_.slot(id).round;
  return (stage.has_loss() && pass.layer + 1 == stage.range.end()) ||
         std::any_of(accesses.begin(), accesses.end(), [&](BoundaryAccess const& access) {
           return access.writes && !call_.resident.way({access.kind, access.layer, m}, round).own;
         });
}

ROUNDPIPE_INLINE void StageCompute::add_forward(SlotId id, std::size_t m, Pass const& pass) {
  add_layer(pass, call_.make(id, action_kind(pass), LaneKind::compute, m));
}

ROUNDPIPE_INLINE void StageCompute::add_backward(SlotId id, std::size_t m, Pass const& pass) {
  auto const& stage = call_.stage_of(id);
  auto const& input = call_.input;
  auto& work = call_.work_of(id);
  auto const i = pass.layer - stage.range.first;
  auto action = call_.make(id, action_kind(pass), LaneKind::compute, m);
  if (i + 1 == stage.range.count) {
    wait_for(action, work.gradient_up[m]);
  }
  auto const& uses = input.blocks.layer_uses[pass.layer];
  if (std::any_of(uses.begin(), uses.end(), [&](auto use) { return input.blocks.trains(use); })) {
    action.writes.push_back(call_.acquire_once(
        work.gradients, BufferKind::gradients, input.buffering.gradients, action, 0));
  }
  auto const added = add_layer(pass, std::move(action));
  if (m + 1 == call_.micro_batches_per_round()) {
    work.last_backward[pass.layer] = added;
  }
}

ROUNDPIPE_INLINE void StageCompute::write_entry(Action& action) {
  auto& entry = call_.work_of(action.slot).entries_out[action.micro_batch.index()];
  action.writes.push_back(call_.acquire_once(entry,
                                             BufferKind::activations_out,
                                             call_.input.buffering.activations,
                                             action,
                                             call_.ring_index(action.slot)));
}

ROUNDPIPE_INLINE void StageCompute::read_parameters(Action& action) {
  auto const& stage = call_.stage_of(action.slot);
  auto const& work = call_.work_of(action.slot);
  for (auto const use : call_.input.blocks.layer_uses[action.layer.index()]) {
    auto const& place = stage.place_of(use);
    if (action.kind == ActionKind::backward && !place.backward_reads) {
      continue;
    }
    auto const held = place.stays
                          ? call_.resident_block(action.slot, use)
                          : ResidentBlock{work.parameters, work.uploaded[place.holder.index()]};
    if (!place.holds()) {
      action.uses.push_back(place.holder);
    }
    // A layer whose backward reads none may read them first for a later micro-batch.
    if (action.first || (stage.recomputes_one_by_one() && !place.backward_reads)) {
      wait_for(action, held.uploaded);
    }
    if (held.place &&
        std::find(action.reads.begin(), action.reads.end(), *held.place) == action.reads.end()) {
      action.reads.push_back(*held.place);
    }
  }
}

ROUNDPIPE_INLINE void StageCompute::use_boundaries(Action& action, Pass const& pass) {
  auto const& stage = call_.stage_of(action.slot);
  auto const& work = call_.work_of(action.slot);
  auto const m = action.micro_batch.index();
  auto reads_in = stage.layers[pass.layer - stage.range.first].side_inputs.bytes > 0;
  auto reads_out = false;
  std::vector<std::pair<BoundaryAccess, Ring>> kept;  // by the device
  for (auto const& access : boundary_accesses(stage, pass)) {
    auto const& way = call_.way(action, access.kind, access.layer);
    if (auto const ring = access.writes ? way.own : way.read_by(action.stage)) {
      kept.emplace_back(access, *ring);
    } else if (!access.writes) {
      (access.place.area == Area::activations_in ? reads_in : reads_out) = true;
    }
  }
  if (reads_in && work.entries_in[m]) {
    action.reads.push_back(*work.entries_in[m]);
  }
  if (reads_out) {
    action.reads.push_back(work.entries_out[m].value());
  }
  for (auto const& [access, ring] : kept) {
    access.writes ? call_.write_kept(action, access.kind, access.layer, ring)
                  : call_.read_kept(action, access.kind, access.layer, ring);
  }
}

ROUNDPIPE_INLINE ActionId StageCompute::add_layer(Pass const& pass, Action action) {
  auto& work = call_.work_of(action.slot);
  auto const m = action.micro_batch.index();
  action.layer = LayerId(pass.layer);
  action.save_level = pass.level;
  action.hands_on_output = pass.runs_backward() || pass.hands_on_output();
  action.first = m == 0;
  action.last = m + 1 == call_.micro_batches_per_round();
  action.uses = call_.input.blocks.layer_uses[action.layer.index()];
  if (!work.last_compute[m].valid()) {  // the first of the micro-batch
    wait_for(action, work.activation_up[m]);
  }
  if (writes_entry(action.slot, m, pass)) {
    write_entry(action);
  }
  read_parameters(action);
  use_boundaries(action, pass);
  saves_.use_entry(action, pass);
  auto const added = call_.graph.add(std::move(action));
  work.last_compute[m] = added;
  saves_.finish_pass(added, pass);
  return added;
}

}  // namespace detail

}  // namespace roundpipe
