// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/interleaved_schedule.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE DeviceTasks InterleavedSchedule::tasks(ScheduleShape const& shape) const {
  detail::ResidentStageTasks tasks(shape);
  auto const n = shape.devices;
  require(tasks.places() % n == 0,
          Errc::invalid_argument,
          "interleaved 1F1B needs a number of stages that is a multiple of the devices");
  auto const loops = tasks.places() / n;
  require(loops == 1 || shape.micro_batches_per_round % n == 0,
          Errc::invalid_argument,
          "interleaved 1F1B with several stages a device needs a number of micro-batches that is "
          "a multiple of the devices");
  auto const turns = order(loops, n, shape.micro_batches_per_round);
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    for (std::size_t r = 0; r < n; ++r) {
      auto const warm_up = std::min(2 * (n - 1 - r) + (loops - 1) * n, turns.size());
      for (std::size_t i = 0; i < turns.size() + warm_up; ++i) {
        if (i < turns.size()) {
          tasks.forward({r, turns[i].loop * n + r, round, turns[i].m});
        }
        if (i >= warm_up) {
          auto const& turn = turns[i - warm_up];
          tasks.backward({r, (loops - 1 - turn.loop) * n + r, round, turn.m});
        }
      }
    }
  }
  return std::move(tasks).take();
}

ROUNDPIPE_INLINE std::vector<InterleavedSchedule::Turn> InterleavedSchedule::order(
    std::size_t loops, std::size_t group, std::size_t micro_batches_per_round) {
  std::vector<Turn> turns;
  for (std::size_t first = 0; first < micro_batches_per_round; first += group) {
    auto const end = std::min(first + group, micro_batches_per_round);
    for (std::size_t loop = 0; loop < loops; ++loop) {
      for (auto m = first; m < end; ++m) {
        turns.push_back({loop, m});
      }
    }
  }
  return turns;
}

}  // namespace roundpipe
