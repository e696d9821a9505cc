// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/graph_builder.hpp>
#include <roundpipe/graph/pass_actions.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/plan/resident_graph.hpp>
#include <roundpipe/schedule/schedule_check.hpp>
#include <roundpipe/schedule/task_passes.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

class ResidentGraphBuilder {
 public:
  explicit ResidentGraphBuilder(ResidentGraphInput const& input)
      : in_(input), graph_(input.shape.devices) {
    stages_ = in_.partition.forward;
    stages_.insert(stages_.end(), in_.partition.backward.begin(), in_.partition.backward.end());
    require(in_.partition.forward.size() == in_.shape.forward_stages &&
                in_.partition.backward.size() == in_.shape.backward_stages,
            Errc::invalid_argument,
            "a graph was asked for with a shape that is not the partition's");
    check(in_.shape, in_.tasks);
    for (std::size_t device = 0; device < in_.tasks.size(); ++device) {
      for (auto const& task : in_.tasks[device]) {
        devices_[key(task)] = device;
      }
    }
  }

  [[nodiscard]] ActionGraph build() && {
    std::vector<std::size_t> taken(in_.tasks.size(), 0);
    for (bool goes_on = true; goes_on;) {
      goes_on = false;
      for (std::size_t device = 0; device < in_.tasks.size(); ++device) {
        auto const& list = in_.tasks[device];
        if (taken[device] < list.size() && is_due(list[taken[device]])) {
          add(list[taken[device]++], device);
          goes_on = true;
        }
      }
    }
    for (std::size_t device = 0; device < in_.tasks.size(); ++device) {
      if (taken[device] < in_.tasks[device].size()) {
        throw broken_rule("Schedule::tasks",
                          3,
                          "device " + std::to_string(device) + " waits forever with " +
                              to_string(in_.tasks[device][taken[device]]));
      }
    }
    return std::move(graph_).finish(in_.advance);
  }

 private:
  /// A layer's output, or the gradient of it, of a micro-batch of a round.
  struct Boundary {
    bool is_gradient = false;
    std::size_t layer = 0;
    RoundId round;
    MicroBatchId micro_batch;

    friend auto operator<=>(Boundary const&, Boundary const&) = default;
  };
  /// Where a boundary is.
  struct Made {
    ActionId by;
    std::size_t device = 0;
    std::optional<ActionId> downloaded;
  };
  using Key = std::tuple<StageId, TaskKind, RoundId, MicroBatchId>;
  static constexpr std::size_t task_kind_count = 6;

  [[nodiscard]] static Key key(Task const& task) {
    return {task.stage, task.kind, task.round, task.micro_batch};
  }
  [[nodiscard]] std::size_t layers() const noexcept { return in_.boundary_bytes.size(); }
  [[nodiscard]] LayerRange range_of(Task const& task) const { return stages_[task.stage.index()]; }

  /// What \p task takes from other tasks: its input, and the gradient of its output.
  [[nodiscard]] std::vector<Boundary> taken_by(Task const& task) const {
    auto const range = range_of(task);
    std::vector<Boundary> result;
    auto const takes = [&](bool is_gradient, std::size_t layer) {
      result.push_back({is_gradient, layer, task.round, task.micro_batch});
    };
    if (range.count == 0) {
      return result;
    }
    auto const passes = layer_passes(task.kind);
    auto const recomputes = reads(passes, PassData::checkpoint);
    if (range.first > 0 && (recomputes || reads(passes, PassData::input))) {
      takes(false, range.first - 1);
    }
    auto const needs_gradient =
        reads(passes, PassData::output_gradient) && !writes(passes, PassData::output);
    if (needs_gradient || (recomputes && in_.recompute_waits_for_gradient)) {
      takes(range.end() < layers(), range.end() - 1);  // of the last layer: the loss
    }
    return result;
  }

  [[nodiscard]] bool is_due(Task const& task) const {
    for (auto const& boundary : taken_by(task)) {
      if (!made_.contains(boundary)) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] Action make(Task const& task, ActionKind kind, LaneKind lane, std::size_t device) {
    Action action;
    action.kind = kind;
    action.lane = {lane, DeviceId(device)};
    action.stage = task.stage;
    action.round = task.round;
    action.micro_batch = task.micro_batch;
    return action;
  }

  void add(Task const& task, std::size_t device) {
    auto const range = range_of(task);
    std::vector<ActionId> waits;
    for (auto const& boundary : taken_by(task)) {
      waits.push_back(bring(task, boundary, device));
    }
    for (auto const& pass : passes_over(layer_passes(task.kind), range)) {
      auto const id = add_pass(task, pass, device, waits);
      if (pass.writes.has(PassData::output)) {
        hand_on(task, {false, pass.layer, task.round, task.micro_batch}, id, device);
      }
      if (pass.writes.has(PassData::input_gradient) && pass.layer > 0) {
        hand_on(task, {true, pass.layer - 1, task.round, task.micro_batch}, id, device);
      }
    }
  }

  /// Adds one pass; the task's first one has its \p waits.
  ActionId add_pass(Task const& task,
                    Pass const& pass,
                    std::size_t device,
                    std::vector<ActionId>& waits) {
    auto action = make(task, action_kind(pass), LaneKind::compute, device);
    action.layer = LayerId(pass.layer);
    action.waits = std::exchange(waits, {});
    auto const event =
        pass.runs_backward() ? BlockEventKind::gradient_write : BlockEventKind::upload;
    std::vector<BlockId> blocks;
    for (auto const use : in_.blocks.layer_uses[pass.layer]) {
      if (in_.blocks.trains(use)) {
        blocks.push_back(in_.blocks.use(use).block);
      }
    }
    for (auto const block : blocks) {
      if (!pass.runs_backward() &&
          begun_.insert({block, device}).second) {  // others are behind on its lane
        auto const events = in_.before({block, event, 0});
        action.block_waits.insert(action.block_waits.end(), events.begin(), events.end());
      }
    }
    auto const id = graph_.add(std::move(action));
    for (auto const block : blocks) {
      graph_.publish({block, event, 0}, id);
    }
    return id;
  }

  /// Says that \p boundary is there, and sends it to the host if another device takes it.
  void hand_on(Task const& task, Boundary const& boundary, ActionId by, std::size_t device) {
    auto& made = made_[boundary] = {by, device, std::nullopt};
    if (boundary.layer + 1 == layers() && !boundary.is_gradient) {
      auto loss = make(task, ActionKind::download_activation, LaneKind::activation_down, device);
      loss.waits = {by};
      loss.writes.push_back({{BufferKind::loss, DeviceId::none(), task.micro_batch.index()}, 0});
      graph_.add(std::move(loss));
      return;
    }
    if (leaves(boundary, device)) {
      auto action = make(task, ActionKind::download_activation, LaneKind::activation_down, device);
      action.bytes = in_.boundary_bytes[boundary.layer];
      action.waits = {by};
      made.downloaded = graph_.add(std::move(action));
    }
  }

  /// Whether a task that takes \p boundary runs on another device than \p device.
  [[nodiscard]] bool leaves(Boundary const& boundary, std::size_t device) const {
    for (std::size_t stage = 0; stage < stages_.size(); ++stage) {
      auto const range = stages_[stage];
      auto const takes =
          range.count > 0 && (boundary.is_gradient ? stage >= in_.shape.forward_stages &&
                                                         range.end() == boundary.layer + 1
                                                   : range.first == boundary.layer + 1);
      for (std::size_t kind = 0; takes && kind < task_kind_count; ++kind) {
        auto const taker = devices_.find(
            {StageId(stage), static_cast<TaskKind>(kind), boundary.round, boundary.micro_batch});
        if (taker != devices_.end() && taker->second != device) {
          return true;
        }
      }
    }
    return false;
  }

  /// What a task on \p device waits for to have \p boundary.
  ActionId bring(Task const& task, Boundary const& boundary, std::size_t device) {
    auto const& made = made_.at(boundary);
    if (made.device == device) {
      return made.by;
    }
    auto const [brought, is_new] = brought_.try_emplace({boundary, device});
    if (!is_new) {
      return brought->second;
    }
    auto action =
        make(task,
             boundary.is_gradient ? ActionKind::upload_gradient : ActionKind::upload_activation,
             LaneKind::activation_up,
             device);
    action.bytes = in_.boundary_bytes[boundary.layer];
    action.waits = {made.downloaded.value()};
    return brought->second = graph_.add(std::move(action));
  }

  ResidentGraphInput const& in_;
  GraphBuilder graph_;
  std::vector<LayerRange> stages_;
  std::map<Key, std::size_t> devices_;  // that run the tasks
  std::map<Boundary, Made> made_;
  std::map<std::pair<Boundary, std::size_t>, ActionId> brought_;  // to a device, which keeps it
  std::set<std::pair<BlockId, std::size_t>> begun_;               // blocks that a device has used
};

}  // namespace detail

ROUNDPIPE_INLINE ActionGraph build_resident_graph(ResidentGraphInput const& input) {
  return detail::ResidentGraphBuilder(input).build();
}

}  // namespace roundpipe
