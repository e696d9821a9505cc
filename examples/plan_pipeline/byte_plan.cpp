// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "byte_plan.hpp"

#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/stage_memory.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace plan_pipeline {

namespace rp = roundpipe;

namespace {

constexpr rp::Buffering modes[] = {{2, 2, 2}, {2, 1, 2}, {1, 1, 2}, {1, 1, 1}};

template <class F>
void for_each_stage(rp::Partition const& partition, F&& f) {
  for (auto const& range : partition.forward) {
    f(rp::StageDirection::forward, range);
  }
  for (auto const& range : partition.backward) {
    f(rp::StageDirection::backward, range);
  }
}

/// The memory of a device whose rings hold any stage of \p partition.
rp::DeviceUse device_use(rp::StageMemory const& memory, rp::Partition const& partition) {
  rp::DeviceUse use;
  for_each_stage(partition, [&](rp::StageDirection direction, rp::LayerRange range) {
    auto const terms = memory.terms(direction, range);
    use.parameters = std::max(use.parameters, terms.parameters);
    use.gradients = std::max(use.gradients, terms.gradients);
    use.boundaries = std::max(use.boundaries, terms.activations);
    use.saved = std::max(use.saved, terms.saved);
    use.workspace = std::max(use.workspace, terms.workspace);
  });
  return use;
}

/// The stage that needs most.
struct LargestStage {
  rp::StageDirection direction = rp::StageDirection::forward;
  rp::LayerRange range;
  rp::Bytes bytes = 0;
};

LargestStage largest_stage(rp::StageMemory const& memory, rp::Partition const& partition) {
  LargestStage largest;
  for_each_stage(partition, [&](rp::StageDirection direction, rp::LayerRange range) {
    if (auto const bytes = memory.bytes(direction, range); bytes > largest.bytes) {
      largest = {direction, range, bytes};
    }
  });
  return largest;
}

/// What \ref plan_within looks for; nothing when it is not there.
std::optional<BytePlan> try_within(rp::PartitionProblem problem,
                                   std::span<rp::LayerBytes const> layers,
                                   rp::Bytes budget,
                                   SearchStages const& search) {
  for (auto const& buffering : modes) {
    rp::StageMemory const memory(layers, buffering);
    for (auto limit = budget; limit > 0;) {
      problem.fits = [&](rp::StageDirection direction, rp::LayerRange range) {
        return memory.bytes(direction, range) <= limit;
      };
      std::optional<rp::RoundPartition> found;
      try {
        found = search(problem);
      } catch (rp::Error const& error) {
        if (error.code() != rp::Errc::over_budget) {
          throw;
        }
        break;
      }
      auto const use = device_use(memory, found->partition);
      if (use.total() <= budget) {
        return BytePlan{
            std::move(found->partition), found->micro_batches_per_round, buffering, use};
      }
      // Stages that fit one by one may not fit together: each class of bytes is as large as the
      // stage needs that needs most of it. A smaller limit for one stage gives other stages.
      auto const largest = largest_stage(memory, found->partition).bytes;
      if (largest > limit) {
        break;  // the stages are given
      }
      limit = largest - 1;
    }
  }
  return std::nullopt;
}

}  // namespace

BytePlan plan_within(rp::PartitionProblem const& problem,
                     std::span<rp::LayerBytes const> layers,
                     std::optional<rp::Bytes> budget,
                     SearchStages const& search) {
  constexpr auto unlimited = std::numeric_limits<rp::Bytes>::max() / 2;
  if (auto plan = try_within(problem, layers, budget.value_or(unlimited), search)) {
    return *std::move(plan);
  }
  // By bisection: the least budget that holds a plan.
  auto low = *budget;
  auto high = unlimited;
  while (high - low > 1) {
    auto const middle = low + (high - low) / 2;
    (try_within(problem, layers, middle, search) ? high : low) = middle;
  }
  auto const least = try_within(problem, layers, high, search).value();
  auto const largest = largest_stage(rp::StageMemory(layers, least.buffering), least.partition);
  throw rp::Error(
      rp::Errc::over_budget,
      fmt::format("{} bytes ({}) of device memory hold no stages: the {} stage of layers {} to {} "
                  "alone needs {} bytes ({}); {} bytes ({}) would do for all",
                  *budget,
                  rp::format_bytes(*budget),
                  largest.direction == rp::StageDirection::forward ? "forward" : "backward",
                  largest.range.first,
                  largest.range.end() - 1,
                  largest.bytes,
                  rp::format_bytes(largest.bytes),
                  high,
                  rp::format_bytes(high)));
}

}  // namespace plan_pipeline
