// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "warnings.hpp"

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/schedule/earliest_finish_schedule.hpp>
#include <roundpipe/simulate/stage_activity.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

namespace plan_pipeline {

namespace rp = roundpipe;

std::vector<std::string> warnings_of(Outcome const& outcome, Problem const& problem) {
  std::vector<std::string> warnings;
  auto const& shape = outcome.shape;
  auto const ms = [](double seconds) { return fmt::format("{:.3g} ms", 1e3 * seconds); };
  double shortest_s = std::numeric_limits<double>::infinity();
  double longest_s = 0;
  std::size_t hurried = 0;
  double hurried_s = 2e-3;  // below it, launches and copies of small tensors show
  auto const ranges = rp::forward_ranges(outcome.partition);
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    double seconds = 0;
    for (auto const& cost : std::span(problem.costs).subspan(ranges[i].first, ranges[i].count)) {
      seconds += cost.forward_s;
    }
    if (ranges[i].count > 0 && seconds < hurried_s) {
      hurried_s = seconds;
      hurried = i + 1;
    }
  }
  if (hurried > 0) {
    warnings.push_back(
        fmt::format("forward stage {} takes {} a micro-batch; below 2 ms launches and "
                    "small copies show",
                    hurried - 1,
                    ms(hurried_s)));
  }
  auto const times = rp::stage_times(problem.costs, outcome.partition);
  for (std::size_t i = 0; i < times.size(); ++i) {
    auto const backward = i >= outcome.partition.forward.size();
    auto const& range = backward ? outcome.partition.backward[i - outcome.partition.forward.size()]
                                 : outcome.partition.forward[i];
    if (range.count > 0 && (backward || !outcome.binds)) {
      auto const seconds = times[i].early_s + times[i].late_s;
      shortest_s = std::min(shortest_s, seconds);
      longest_s = std::max(longest_s, seconds);
    }
  }
  if (longest_s > 1.2 * shortest_s) {
    warnings.push_back(fmt::format("stages differ by more than 20%: from {} to {} a micro-batch",
                                   ms(shortest_s),
                                   ms(longest_s)));
  }
  auto const idle = outcome.bubbles.bubbles[rp::BubbleCause::transfer_stall];
  auto const all = outcome.bubbles.busy_s + outcome.bubbles.bubbles.total();
  if (all > 0 && idle > 0.01 * all) {
    warnings.push_back(fmt::format(
        "transfers do not hide: devices wait {:.1f}% of the time for copies", 100 * idle / all));
  }
  if (outcome.binds && shape.micro_batches_per_round < 9 * (shape.devices - 1)) {
    warnings.push_back(
        fmt::format("fewer than 9 (P - 1) = {} micro-batches: a pipeline of one stage a device "
                    "fills and drains for more than a tenth of the time",
                    9 * (shape.devices - 1)));
  }
  if (!outcome.binds && shape.micro_batches_per_round < shape.devices) {
    warnings.push_back(
        fmt::format("{} micro-batches a round are fewer than the {} devices, which "
                    "wait for each other",
                    shape.micro_batches_per_round,
                    shape.devices));
  }
  return warnings;
}

}  // namespace plan_pipeline
