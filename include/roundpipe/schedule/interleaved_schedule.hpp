// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Interleaved 1F1B: several stages a device, forwards and backwards in turn.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// \brief The v N stages loop over the N devices, stage i on device i mod N. Micro-batches go
/// through all loops in groups of N; device r runs 2 (N - 1 - r) + (v - 1) N forwards, then a
/// forward and a backward in turn, then the backwards that are left (interleaved 1F1B, Narayanan et
/// al. 2021, arXiv:2104.04473, section 2.2).
///
/// On the last device, each forward of the last stage is followed by its own backward, so that it
/// is fused and recomputes nothing; shapes that do not fuse it are run as well. For v = 1 this is
/// 1F1B with up to twice the forwards ahead, which hides what handing over takes. In flight on
/// device r, all its stages together: at most 2 (N - 1 - r) + (v - 1) N + 1. Bubble of equal
/// stages: (N - 1) / (v M + N - 1). Rounds run one after another.
class InterleavedSchedule {
 public:
  [[nodiscard]] static constexpr bool fuses() noexcept { return true; }

  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds, the number of stages is no multiple of the devices,
  /// backward stages do not mirror forward ones, or a device has several stages and the
  /// micro-batches of a round are no multiple of the devices (devices would wait for each other).
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const {
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

  /// Devices keep their stages from call to call. \throws Error (invalid_argument) when there are
  /// no stages, devices, micro-batches or rounds.
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }

 private:
  struct Turn {
    std::size_t loop;
    std::size_t m;
  };

  /// A group of N micro-batches goes through all loops before the next one starts.
  static std::vector<Turn> order(std::size_t loops,
                                 std::size_t group,
                                 std::size_t micro_batches_per_round) {
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
};

static_assert(Schedule<InterleavedSchedule>);

}  // namespace roundpipe
