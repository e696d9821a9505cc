// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/partition/partition_check.hpp>

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE void check(std::span<LayerCost const> costs) {
  require(!costs.empty(), Errc::invalid_argument, "a model without layers has no stages");
  for (std::size_t layer = 0; layer < costs.size(); ++layer) {
    auto const& cost = costs[layer];
    std::vector<double> times{cost.forward_s, cost.recomputing_s(), cost.backward_s};
    times.insert(times.end(), cost.replay_s.begin(), cost.replay_s.end());
    for (auto const s : times) {
      if (!(s >= 0) || !std::isfinite(s)) {
        throw Error(Errc::invalid_argument,
                    "the cost of layer " + std::to_string(layer) + " is " + std::to_string(s) +
                        " s; a cost is finite and not negative");
      }
    }
  }
}

namespace detail {

/// "forward stage 1 holds 2 layers from layer 3 on, ".
[[nodiscard]] ROUNDPIPE_INLINE std::string stage_text(char const* direction,
                                                      std::size_t i,
                                                      LayerRange const& range) {
  return std::string(direction) + " stage " + std::to_string(i) + " holds " +
         std::to_string(range.count) + " layers from layer " + std::to_string(range.first) +
         " on, ";
}

/// Why \p partition is none of \p layers layers; nothing if it is one.
[[nodiscard]] ROUNDPIPE_INLINE std::optional<std::string> fault_of(Partition const& partition,
                                                                   std::size_t layers) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < partition.forward.size(); ++i) {
    auto const& range = partition.forward[i];
    if (range.first != next || range.count == 0 || range.count > layers - next) {
      return stage_text("forward", i, range) + "but must begin with layer " + std::to_string(next) +
             " of " + std::to_string(layers);
    }
    next = range.end();
  }
  if (partition.backward.empty()) {
    return "there is no backward stage";
  }
  if (auto const& fused = partition.backward.front(); fused.first != next) {
    return stage_text("backward", 0, fused) + "but must begin with layer " + std::to_string(next) +
           ", where the forward stages end";
  }
  auto end = layers;
  for (std::size_t i = 0; i < partition.backward.size(); ++i) {
    auto const& range = partition.backward[i];
    if (range.count == 0 || range.count > end || range.first != end - range.count) {
      return stage_text("backward", i, range) + "but must end before layer " + std::to_string(end);
    }
    end = range.first;
  }
  if (end != 0) {
    return "the last backward stage begins with layer " + std::to_string(end) + ", not 0";
  }
  return std::nullopt;
}

}  // namespace detail

ROUNDPIPE_INLINE void check(Partition const& partition, std::size_t layers) {
  if (auto const fault = detail::fault_of(partition, layers)) {
    throw broken_rule("PartitionPolicy::partition", 1, *fault);
  }
}

ROUNDPIPE_INLINE bool covers(Partition const& partition, std::size_t layers) {
  return !detail::fault_of(partition, layers);
}

ROUNDPIPE_INLINE bool fits(PartitionProblem const& problem, Partition const& partition) {
  return !unfit_stage(problem, partition);
}

ROUNDPIPE_INLINE std::optional<std::string> unfit_stage(PartitionProblem const& problem,
                                                        Partition const& partition) {
  auto const find = [&](StageDirection direction,
                        char const* name,
                        std::vector<LayerRange> const& ranges) -> std::optional<std::string> {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (problem.fits && !problem.fits(direction, ranges[i])) {
        return detail::stage_text(name, i, ranges[i]) + "and does not fit";
      }
    }
    return std::nullopt;
  };
  auto const unfit = find(StageDirection::forward, "forward", partition.forward);
  return unfit ? unfit : find(StageDirection::backward, "backward", partition.backward);
}

}  // namespace roundpipe
