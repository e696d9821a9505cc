// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/schedule/schedule_check.hpp>

#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::string to_string(Task const& task) {
  constexpr char const* names[] = {
      "forward", "recompute", "backward", "fused task", "input gradient", "weight gradient"};
  auto const kind = static_cast<std::size_t>(task.kind);
  return "the " + (kind < std::size(names) ? names[kind] : "task of kind " + std::to_string(kind)) +
         " of stage " + std::to_string(task.stage.value()) + " for micro-batch " +
         std::to_string(task.micro_batch.value()) + " of round " +
         std::to_string(task.round.value());
}

namespace detail {

/// Ticks off the tasks of a call, each of which a schedule lists once.
class TaskCheck {
 public:
  explicit TaskCheck(ScheduleShape const& shape)
      : shape_(shape), work_(shape.stages() * shape.rounds * shape.micro_batches_per_round) {}

  /// Ticks off \p task, which comes next on \p device.
  void add(Task const& task, std::size_t device) {
    auto const refuse_as = [&](std::string const& why) {
      refuse(to_string(task) + " on device " + std::to_string(device) + why);
    };
    if (!is_below(task.stage, shape_.stages()) || !is_below(task.round, shape_.rounds) ||
        !is_below(task.micro_batch, shape_.micro_batches_per_round)) {
      refuse_as(", in a call of " + std::to_string(shape_.stages()) + " stages, " +
                std::to_string(shape_.rounds) + " rounds and " +
                std::to_string(shape_.micro_batches_per_round) + " micro-batches a round");
    }
    auto const parts = parts_of(task.kind);
    if (parts == 0 || (parts & ~parts_of(task.stage)) != 0) {
      refuse_as(", which is no task of such a stage");
    }
    auto& work = work_[(task.round.index() * shape_.stages() + task.stage.index()) *
                           shape_.micro_batches_per_round +
                       task.micro_batch.index()];
    if ((work.done & parts) != 0) {
      refuse_as(" does again what is done");
    }
    auto const first = parts_before(task.kind);
    if (first != 0 && ((work.done & first) == 0 || work.device != device)) {
      refuse_as(" does not come after the task that it goes on from");
    }
    work.done |= parts;
    work.device = device;
  }

  /// Refuses tasks that are still missing when all lists have ended.
  void finish() const {
    for (std::size_t i = 0; i < work_.size(); ++i) {
      auto const slot = i / shape_.micro_batches_per_round;
      StageId const stage(slot % shape_.stages());
      if (work_[i].done != parts_of(stage)) {
        refuse("stage " + std::to_string(stage.value()) + " lacks a task for micro-batch " +
               std::to_string(i % shape_.micro_batches_per_round) + " of round " +
               std::to_string(slot / shape_.stages()));
      }
    }
  }

 private:
  /// The parts of a stage's work on a micro-batch, as bits. A whole backward is both gradients.
  enum Part : unsigned { forward = 1, fused = 2, recompute = 4, input = 8, weights = 16 };
  struct Work {
    unsigned done = 0;
    std::size_t device = 0;  // of the last task
  };

  template <class I>
  [[nodiscard]] static bool is_below(I id, std::size_t end) {
    return id.valid() && id.index() < end;
  }
  /// 0 for what is no kind.
  [[nodiscard]] static unsigned parts_of(TaskKind kind) {
    switch (kind) {
      case TaskKind::forward:
        return forward;
      case TaskKind::recompute:
        return recompute;
      case TaskKind::backward:
        return input | weights;
      case TaskKind::fused:
        return fused;
      case TaskKind::input_gradient:
        return input;
      case TaskKind::weight_gradient:
        return weights;
    }
    return 0;
  }
  [[nodiscard]] unsigned parts_of(StageId stage) const {
    switch (stage_kind(shape_, stage)) {
      case StageKind::forward:
        return forward;
      case StageKind::fused:
        return fused;
      default:
        return recompute | input | weights;
    }
  }
  [[nodiscard]] static unsigned parts_before(TaskKind kind) {
    switch (kind) {
      case TaskKind::backward:
      case TaskKind::input_gradient:
        return recompute;
      case TaskKind::weight_gradient:
        return input;
      default:
        return 0;
    }
  }

  [[noreturn]] static void refuse(std::string const& value) {
    throw broken_rule("Schedule::tasks", 1, value);
  }

  ScheduleShape const& shape_;
  std::vector<Work> work_;  // by round, stage and micro-batch
};

}  // namespace detail

ROUNDPIPE_INLINE void check(ScheduleShape const& shape, DeviceTasks const& tasks) {
  if (tasks.size() != shape.devices) {
    throw broken_rule(
        "Schedule::tasks",
        1,
        std::to_string(tasks.size()) + " lists for " + std::to_string(shape.devices) + " devices");
  }
  detail::TaskCheck check(shape);
  for (std::size_t device = 0; device < tasks.size(); ++device) {
    for (auto const& task : tasks[device]) {
      check.add(task, device);
    }
  }
  check.finish();
}

}  // namespace roundpipe
