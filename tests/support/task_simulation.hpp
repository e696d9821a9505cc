// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs a schedule's task lists against a clock: the oracle for the tests of schedules.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/partition/partition_objective.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// The times of a stage for one micro-batch, in any unit. The two halves of a backward stage take
/// half of `backward` each.
struct StageTimes {
  double forward = 0;
  double recompute = 0;
  double backward = 0;
};

/// The result of running task lists.
struct TaskRun {
  bool complete = false;  ///< No device waited for ever, and each task ran exactly once.
  double makespan = 0;
  std::vector<double> busy;  ///< For each device.
  /// For each stage, forward stages first, then the fused one: the most micro-batches whose forward
  /// was done and whose backward (its last half) was not; a fused task counts while it runs.
  std::vector<int> peak_in_flight;
  std::vector<int> peak_on_device;  ///< The same, for all stages of a device together.

  /// The share of device time that is idle.
  [[nodiscard]] double bubble() const {
    auto const sum = std::accumulate(busy.begin(), busy.end(), 0.0);
    return 1 - sum / (makespan * static_cast<double>(busy.size()));
  }
};

/// Whether each stage, direction and micro-batch of each round occurs exactly once: a backward
/// stage's backward whole or in two halves, and on one device with its recomputation.
inline bool is_complete(ScheduleShape const& shape, DeviceTasks const& tasks) {
  using Work = std::tuple<std::size_t, std::size_t, std::size_t>;  // stage, round, micro-batch
  std::map<Work, std::map<TaskKind, std::vector<std::size_t>>> devices;
  for (std::size_t device = 0; device < tasks.size(); ++device) {
    for (auto const& task : tasks[device]) {
      devices[{task.stage.index(), task.round.index(), task.micro_batch.index()}][task.kind]
          .push_back(device);
    }
  }
  if (tasks.size() != shape.devices ||
      devices.size() != shape.stages() * shape.rounds * shape.micro_batches_per_round) {
    return false;
  }
  return std::ranges::all_of(devices, [&](auto const& entry) {
    auto const& [work, kinds] = entry;
    auto const stage = std::get<0>(work);
    std::set<std::size_t> on;
    std::set<TaskKind> found;
    for (auto const& [kind, places] : kinds) {
      found.insert(kind);
      on.insert(places.front());
      if (places.size() != 1) {
        return false;
      }
    }
    auto const is = [&](std::set<TaskKind> const& wanted) { return found == wanted; };
    auto const kinds_match =
        stage < shape.forward_stages ? is({TaskKind::forward})
        : shape.fused && stage == shape.forward_stages
            ? is({TaskKind::fused})
            : is({TaskKind::recompute, TaskKind::backward}) ||
                  is({TaskKind::recompute, TaskKind::input_gradient, TaskKind::weight_gradient});
    return kinds_match && on.size() == 1 && stage < shape.stages() &&
           std::get<1>(work) < shape.rounds && std::get<2>(work) < shape.micro_batches_per_round;
  });
}

/// Runs the lists: each device takes its tasks in order, each as soon as its inputs are there.
/// \param times    for each stage, forward stages first, in execution order
/// \param hand_over the time to pass a boundary or its gradient to another device
/// \param speeds   for each device; 0.5 takes twice as long; none: all 1
inline TaskRun run_tasks(ScheduleShape const& shape,
                         DeviceTasks const& tasks,
                         std::span<StageTimes const> times,
                         double hand_over = 0,
                         std::span<double const> speeds = {}) {
  using Work = std::tuple<std::size_t, std::size_t, std::size_t>;
  struct Done {
    double at;
    std::size_t device;
  };
  std::map<Work, Done> done;        // the outputs that the next stage waits for
  std::map<Work, double> prepared;  // recomputed
  std::map<Work, double> halved;    // the input's gradient is there
  struct Event {
    double at;
    std::size_t place;
    std::size_t device;
    int change;
  };
  std::vector<Event> events;
  auto const mirrors = shape.backward_stages == shape.forward_stages + (shape.fused ? 1 : 0);
  auto const place_of = [&](std::size_t stage) {
    return stage < shape.forward_stages ? stage : shape.stages() - 1 - stage;
  };

  // The time at which all inputs of the task are there; nothing while it is unknown.
  auto const ready = [&](Task const& task, std::size_t device) -> std::optional<double> {
    auto const stage = task.stage.index();
    auto const key = [&](std::size_t s) {
      return Work{s, task.round.index(), task.micro_batch.index()};
    };
    double at = 0;
    auto const local = [&](std::map<Work, double> const& what) {
      auto const found = what.find(key(stage));
      at = found == what.end() ? at : std::max(at, found->second);
      return found != what.end();
    };
    switch (task.kind) {
      case TaskKind::recompute: {
        // The stage's input was also the input of the forward stage of the same layers.
        if (!mirrors) {
          return 0;
        }
        auto const forward = done.find(key(place_of(stage)));
        return forward == done.end() ? std::nullopt : std::optional(forward->second.at);
      }
      case TaskKind::weight_gradient:
        return local(halved) ? std::optional(at) : std::nullopt;
      case TaskKind::backward:
      case TaskKind::input_gradient:
        if (!local(prepared)) {
          return std::nullopt;
        }
        break;
      case TaskKind::forward:
      case TaskKind::fused:
        break;
    }
    if (stage == 0) {
      return at;
    }
    auto const before = done.find(key(stage - 1));
    if (before == done.end()) {
      return std::nullopt;
    }
    return std::max(at, before->second.at + (before->second.device == device ? 0 : hand_over));
  };
  auto const duration = [&](Task const& task, std::size_t device) {
    auto const& stage = times[task.stage.index()];
    auto const speed = speeds.empty() ? 1.0 : speeds[device];
    switch (task.kind) {
      case TaskKind::forward:
        return stage.forward / speed;
      case TaskKind::recompute:
        return stage.recompute / speed;
      case TaskKind::backward:
        return stage.backward / speed;
      case TaskKind::fused:
        return (stage.forward + stage.backward) / speed;
      case TaskKind::input_gradient:
      case TaskKind::weight_gradient:
        break;
    }
    return stage.backward / 2 / speed;
  };

  TaskRun run;
  run.busy.resize(tasks.size());
  std::vector<double> free(tasks.size());
  std::vector<std::size_t> next(tasks.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t device = 0; device < tasks.size(); ++device) {
      for (; next[device] < tasks[device].size(); ++next[device]) {
        auto const& task = tasks[device][next[device]];
        auto const at = ready(task, device);
        if (!at) {
          break;
        }
        auto const start = std::max(*at, free[device]);
        auto const end = start + duration(task, device);
        free[device] = end;
        run.busy[device] += end - start;
        run.makespan = std::max(run.makespan, end);
        moved = true;
        Work const key{task.stage.index(), task.round.index(), task.micro_batch.index()};
        auto const place = place_of(task.stage.index());
        switch (task.kind) {
          case TaskKind::recompute:
            prepared[key] = end;
            break;
          case TaskKind::weight_gradient:
            events.push_back({end, place, device, -1});
            break;
          case TaskKind::input_gradient:
            halved[key] = end;
            done[key] = {end, device};
            break;
          case TaskKind::forward:
            events.push_back({end, place, device, +1});
            done[key] = {end, device};
            break;
          case TaskKind::backward:
            events.push_back({end, place, device, -1});
            done[key] = {end, device};
            break;
          case TaskKind::fused:
            events.push_back({start, place, device, +1});
            events.push_back({end, place, device, -1});
            done[key] = {end, device};
            break;
        }
      }
    }
  }
  run.complete = is_complete(shape, tasks);
  for (std::size_t device = 0; device < tasks.size(); ++device) {
    run.complete = run.complete && next[device] == tasks[device].size();
  }
  std::ranges::stable_sort(events, {}, &Event::at);
  run.peak_in_flight.resize(std::max(shape.forward_stages, shape.backward_stages));
  run.peak_on_device.resize(tasks.size());
  std::vector<int> in_flight(run.peak_in_flight.size());
  std::vector<int> on_device(tasks.size());
  auto const count = [](int& now, int change, int& peak) {
    now += change;
    peak = std::max(peak, now);
  };
  for (auto const& event : events) {
    count(in_flight[event.place], event.change, run.peak_in_flight[event.place]);
    count(on_device[event.device], event.change, run.peak_on_device[event.device]);
  }
  return run;
}

/// The shape of a call of \p places stages, each forward and backward.
inline ScheduleShape bound_shape(std::size_t places,
                                 std::size_t devices,
                                 std::size_t micro_batches_per_round,
                                 bool fused,
                                 std::size_t rounds = 1) {
  return {.forward_stages = places - (fused ? 1 : 0),
          .backward_stages = places,
          .devices = devices,
          .micro_batches_per_round = micro_batches_per_round,
          .rounds = rounds,
          .fused = fused};
}

/// The times of all stages of \p shape if each takes \p times.
inline std::vector<StageTimes> equal_times(ScheduleShape const& shape, StageTimes const& times) {
  return std::vector<StageTimes>(shape.stages(), times);
}

/// The times of a partition's stages in execution order, in the unit of \p costs.
inline std::vector<StageTimes> times_of(std::span<LayerCost const> costs,
                                        Partition const& partition) {
  std::vector<StageTimes> times;
  auto const add = [&](LayerRange const& range) {
    StageTimes sum;
    for (auto const& cost : costs.subspan(range.first, range.count)) {
      sum.forward += cost.forward_s;
      sum.recompute += cost.recomputing_s();
      sum.backward += cost.backward_s;
    }
    times.push_back(sum);
  };
  std::ranges::for_each(partition.forward, add);
  std::ranges::for_each(partition.backward, add);
  return times;
}

/// Runs the lists of a streamed schedule as devices would: each takes its next task as soon as the
/// task's predecessor is done for the same micro-batch. \returns the tasks left over.
[[nodiscard]] inline std::size_t stuck(ScheduleShape const& shape, DeviceTasks const& tasks) {
  std::set<std::tuple<std::size_t, std::size_t, std::size_t>> done;  // round, stage, micro-batch
  std::vector<std::size_t> next(tasks.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t device = 0; device < tasks.size(); ++device) {
      for (; next[device] < tasks[device].size(); ++next[device]) {
        auto const& task = tasks[device][next[device]];
        auto const stage = task.stage.index();
        // A recomputation starts from a boundary of the forward stages, every other task from the
        // stage before.
        auto const after = task.kind == TaskKind::recompute ? shape.forward_stages : stage;
        if (after > 0 &&
            !done.contains({task.round.index(), after - 1, task.micro_batch.index()})) {
          break;
        }
        if (task.kind != TaskKind::recompute) {
          done.insert({task.round.index(), stage, task.micro_batch.index()});
        }
        moved = true;
      }
    }
  }
  std::size_t left = 0;
  for (std::size_t device = 0; device < tasks.size(); ++device) {
    left += tasks[device].size() - next[device];
  }
  return left;
}

}  // namespace roundpipe::test
