// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Looped breadth-first schedule: stages bound to devices, all micro-batches of one at once.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/id.hpp>

#include <cstddef>

namespace roundpipe {

/// \brief Stage i, and the backward stage that holds the same place from the end, run on device
/// i mod N, whatever the call (breadth-first pipeline parallelism, Lamy-Poirier 2023).
///
/// The baseline that \ref RoundRobinSchedule is compared with in the same runtime: its bubbles come
/// from forward stages that take less time than backward ones on the same devices.
class LoopedBfsSchedule {
 public:
  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const {
    check(shape);
    DeviceTasks tasks(shape.devices);
    for (std::size_t round = 0; round < shape.rounds; ++round) {
      for (std::size_t stage = 0; stage < shape.stages(); ++stage) {
        auto const backward = stage >= shape.forward_stages;
        auto const loop = backward ? shape.stages() - 1 - stage : stage;
        auto& list = tasks[loop % shape.devices];
        for (std::size_t m = 0; m < shape.micro_batches; ++m) {
          auto const add = [&](TaskKind kind) {
            list.push_back({StageId(stage), kind, RoundId(round), MicroBatchId(m)});
          };
          if (!backward) {
            add(TaskKind::forward);
          } else if (stage == shape.forward_stages) {
            add(TaskKind::fused);
          } else {
            add(TaskKind::recompute);
            add(TaskKind::backward);
          }
        }
      }
    }
    return tasks;
  }

  /// Devices keep their stages from call to call. \throws Error (invalid_argument) as \ref tasks().
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }
};

static_assert(Schedule<LoopedBfsSchedule>);

}  // namespace roundpipe
