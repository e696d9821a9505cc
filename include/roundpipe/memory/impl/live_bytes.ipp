// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/held_bytes.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/memory/boundary_place.hpp>
#include <roundpipe/memory/live_bytes.hpp>
#include <roundpipe/memory/slot_times.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// What a device holds over time.
class HeldOfDevice {
 public:
  void hold(BufferKind ring, Lifetime const& time, Bytes bytes) {
    hold(static_cast<std::size_t>(ring), time, bytes);
  }
  /// What has its place in \p area.
  void hold(Area area, Lifetime const& time, Bytes bytes) {
    switch (area) {
      case Area::activations_in:
        return hold(BufferKind::activations_in, time, bytes);
      case Area::activations_out:
        return hold(BufferKind::activations_out, time, bytes);
      case Area::scratch:
        return hold(device_ring_count, time, bytes);
      case Area::none:
        break;
    }
  }
  void hold(Place const& place, Lifetime const& time) { hold(place.area, time, place.bytes); }
  void hold_resident(BufferKind kind, Lifetime const& time, Bytes bytes) {
    kind == BufferKind::parameters ? hold(kind, time, bytes)
                                   : hold(device_ring_count + 1, time, bytes);
  }

  [[nodiscard]] LiveBytes peak() {
    LiveBytes live;
    auto const fullest = all_.peak();
    for (std::size_t i = 0; i < by_class_.size(); ++i) {
      live.most[i] = by_class_[i].peak().bytes;
      live.at_fullest[i] = by_class_[i].at(fullest.at_s);
    }
    return live;
  }

 private:
  void hold(std::size_t index, Lifetime const& time, Bytes bytes) {
    by_class_[index].hold(time, bytes);
    all_.hold(time, bytes);
  }

  std::array<HeldBytes, std::tuple_size_v<LiveClasses>> by_class_;
  HeldBytes all_;
};

/// Holds what a slot needs.
class SlotLife {
 public:
  SlotLife(HeldOfDevice& held,
           SlotTimes const& times,
           StageLayout const& stage,
           ModelDescription const& model,
           ParameterBlocks const& blocks)
      : held_(held), times_(times), stage_(stage), model_(model), blocks_(blocks) {}

  void hold_all() const {
    hold_parameters();
    if (stage_.has_backward()) {
      hold_gradients();
    }
    for (auto const& [id, micro_batch] : times_.micro_batches) {
      for (std::size_t i = 0; i < stage_.range.count; ++i) {
        hold_boundaries(micro_batch, i);
        hold_saves(micro_batch.layers[i], stage_.range.first + i, id);
      }
    }
  }

 private:
  [[nodiscard]] LayerTimes const& times_of(MicroBatchId micro_batch, BlockUseId use) const {
    auto const layer = blocks_.use(use).layer.index();
    return times_.micro_batches.at(micro_batch).layers[layer - stage_.range.first];
  }

  void hold_parameters() const {
    std::map<BlockUseId, Lifetime> readers;  // by holder
    for (auto const& place : stage_.uses) {
      for (auto const& [id, micro_batch] : times_.micro_batches) {
        auto const& times = times_of(id, place.use);
        readers[place.holder].add(place.backward_reads ? times.passes() : times.forward);
      }
    }
    for (auto const& [copy, pieces] : times_.uploads) {
      for (auto const& piece : pieces) {
        if (!stage_.place_of(piece.use).stays) {  // else held for the call
          held_.hold(BufferKind::parameters, {copy, readers[piece.use]}, piece.bytes);
        }
      }
    }
  }

  void hold_gradients() const {
    auto const first = times_.micro_batches.begin()->first;
    auto const last = times_.micro_batches.rbegin()->first;
    for (auto const& place : stage_.uses) {
      auto const& block = blocks_.block_of(place.use);
      auto const& sums = block.gradient;
      for (std::size_t i = 0; place.trains && i < sums.size(); ++i) {
        if (block.rounded_tensors[i]) {
          held_.hold(BufferKind::gradients,
                     {times_of(first, place.use).backward, times_of(last, place.use).backward},
                     sums[i].bytes());
        }
      }
    }
    for (auto const& [copy, pieces] : times_.downloads) {
      for (auto const& piece : pieces) {
        auto const rounds = blocks_.block_of(piece.use).rounded_tensors[piece.tensor].has_value();
        held_.hold(BufferKind::gradients,
                   {times_of(rounds ? last : first, piece.use).backward, copy},
                   piece.bytes);
      }
    }
  }

  void hold_boundaries(SlotTimes::MicroBatch const& micro_batch, std::size_t i) const {
    auto const& place = stage_.layers[i];
    auto const& times = micro_batch.layers[i];
    auto const is_last = i + 1 == stage_.range.count;
    auto const stays = [&](BufferKind kind, bool writes) {  // held elsewhere
      return times.resident.contains({kind, writes});
    };
    if (place.input.area == Area::activations_in &&  // else it is the output of the layer before
        !stays(BufferKind::checkpoint, false)) {
      held_.hold(place.input, {micro_batch.input_up, times.passes()});
    }
    held_.hold(place.side_inputs, {micro_batch.input_up, times.passes()});
    if (times.hands_on_output && !stays(BufferKind::checkpoint, true)) {
      Lifetime life = times.forward;
      if (!is_last) {
        life.add(micro_batch.layers[i + 1].passes());
      }
      if (place.output.area == Area::activations_out) {
        life.add(micro_batch.down);
        life.add(times.sent);
      }
      held_.hold(place.output, life);
      hold_carried(micro_batch, i);
    }
    if (is_last) {
      if (!stays(BufferKind::boundary_gradient, false)) {
        held_.hold(place.output_gradient, {micro_batch.gradient_up, times.backward});
      }
      held_.hold(stage_.loss, {times.passes(), micro_batch.down});
      held_.hold(stage_.results, {times.passes(), micro_batch.down});
    }
    if (i > 0) {
      held_.hold(place.input_gradient, {times.backward, micro_batch.layers[i - 1].backward});
      hold_carried_gradients(micro_batch, i);
    } else if (!stays(BufferKind::boundary_gradient, true)) {
      held_.hold(place.input_gradient, {times.backward, micro_batch.down, times.sent});
    }
  }

  /// Carried tensors lie at one place from the layer that makes them to the last one that reads
  /// them.
  void hold_carried(SlotTimes::MicroBatch const& micro_batch, std::size_t i) const {
    auto const& layers = stage_.layers;
    for (auto const& place : layers[i].output.apart) {
      if (layers[i].input.holds_apart(place)) {
        continue;  // held since a layer before
      }
      Lifetime life = micro_batch.layers[i].forward;
      for (auto k = i + 1; k < layers.size() && layers[k].input.holds_apart(place); ++k) {
        life.add(micro_batch.layers[k].passes());
      }
      held_.hold(place, life);
    }
  }
  void hold_carried_gradients(SlotTimes::MicroBatch const& micro_batch, std::size_t i) const {
    auto const& layers = stage_.layers;
    for (auto const& place : layers[i].input_gradient.apart) {
      if (layers[i].output_gradient.holds_apart(place)) {
        continue;
      }
      Lifetime life = micro_batch.layers[i].backward;
      for (auto k = i; k > 0 && layers[k - 1].output_gradient.holds_apart(place); --k) {
        life.add(micro_batch.layers[k - 1].backward);
      }
      held_.hold(place, life);
    }
  }

  void hold_saves(LayerTimes const& times, std::size_t layer, MicroBatchId micro_batch) const {
    auto const& footprint = model_.layers[layer].footprint;
    held_.hold(Area::scratch, times.forward, footprint.workspace_bytes);
    held_.hold(Area::scratch, times.backward, footprint.workspace_bytes);
    auto const& set = stage_.working_set.of_round(times_.round.index());
    auto const kept = set.bytes(layer, micro_batch.index());
    held_.hold(BufferKind::saves, {times.passes(), times.save_copy}, kept);
    if (stage_.has_backward() || kept > 0) {
      held_.hold(Area::scratch, times.passes(), footprint.saved_bytes - kept);
    }
  }

  HeldOfDevice& held_;
  SlotTimes const& times_;
  StageLayout const& stage_;
  ModelDescription const& model_;
  ParameterBlocks const& blocks_;
};

}  // namespace detail

ROUNDPIPE_INLINE std::vector<LiveBytes> live_bytes(Timeline const& timeline,
                                                   ActionGraph const& call,
                                                   ModelDescription const& model,
                                                   ParameterBlocks const& blocks,
                                                   std::span<StageLayout const> stages) {
  struct Resident {
    std::vector<std::pair<detail::Lifetime, Bytes>> written;
    detail::Lifetime read;
    std::size_t device = 0;
  };
  std::map<std::pair<std::size_t, Buffer>, Resident> resident;        // by graph
  std::map<std::pair<std::size_t, SlotId>, detail::SlotTimes> slots;  // by graph and slot
  for (auto const& entry : timeline) {
    if (!entry.lane.device.valid()) {
      continue;
    }
    auto const& actions = call.actions;
    require(entry.id.index() < actions.size() && actions[entry.id.index()].kind == entry.kind &&
                entry.stage.index() < stages.size(),
            Errc::invalid_argument,
            "the timeline has calls of another graph");
    auto const& action = actions[entry.id.index()];
    auto const& stage = stages[entry.stage.index()];
    slots[{entry.graph, entry.slot}].add(entry, action, stage);
    detail::Lifetime const time(entry);
    for (auto const* list : {&action.reads, &action.writes}) {
      for (auto const& buffer : *list) {
        if (!is_resident(buffer) && !resident_block(buffer.ring).valid()) {
          continue;
        }
        auto& held = resident[{entry.graph, buffer}];
        if (action.kind != ActionKind::send_boundary) {  // another device holds what that writes
          held.device = entry.lane.device.index();
        }
        if (list == &action.writes) {
          held.written.emplace_back(time, detail::resident_bytes(action, buffer, stage, blocks));
        } else {
          held.read.add(time);
        }
      }
    }
  }
  std::vector<detail::HeldOfDevice> held(timeline.devices);
  for (auto const& [id, times] : slots) {
    auto const& stage = stages[times.stage.index()];
    detail::SlotLife(held[times.device.index()], times, stage, model, blocks).hold_all();
  }
  for (auto const& [buffer, each] : resident) {
    for (auto const& [time, bytes] : each.written) {
      held[each.device].hold_resident(buffer.second.ring.kind, {time, each.read}, bytes);
    }
  }
  std::vector<LiveBytes> result;
  for (auto& device : held) {
    result.push_back(device.peak());
  }
  return result;
}

}  // namespace roundpipe
