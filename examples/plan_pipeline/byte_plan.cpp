// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "byte_plan.hpp"

#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/stage_memory.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
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

/// The memory of a device whose rings can hold any stage of \p partition.
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

/// The stage that needs most memory.
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

/// Stages that are no larger than a limit.
struct LimitedStages {
  rp::Bytes limit = 0;
  rp::RoundPartition stages;
};

constexpr auto unlimited = std::numeric_limits<rp::Bytes>::max() / 2;

/// Stages of a problem, by limits on their size.
///
/// Stages that fit one by one may not fit together: the ring of each class of bytes is as large as
/// the stage that needs most of that class. So the search tries smaller and smaller size limits.
/// These limits depend on no budget, which makes the least budget that holds any of the plans known
/// exactly.
class StageLadder {
 public:
  StageLadder(rp::PartitionProblem problem,
              rp::StageMemory const& memory,
              StageSource const& source)
      : problem_(std::move(problem)), memory_(memory), source_(source) {}

  /// Calls \p is_found with ever smaller stages until it returns true.
  template <class F>
  void descend(F const& is_found) {
    if (source_.given) {
      is_found(LimitedStages{unlimited, {*source_.given, source_.micro_batches_per_round, {}}});
      return;
    }
    constexpr int rungs = 64;
    auto const least = memory_.least();
    auto step = 1.0;
    auto limit = unlimited;
    for (int rung = 0;; ++rung) {
      auto stages = within(limit, source_.quick);
      auto const largest = largest_stage(memory_, stages.partition).bytes;
      if (is_found(LimitedStages{limit, std::move(stages)})) {
        return;
      }
      if (largest <= least) {
        return;
      }
      if (rung == 0) {
        step = std::pow(static_cast<double>(least) / static_cast<double>(largest), 1.0 / rungs);
      }
      auto const next = static_cast<rp::Bytes>(static_cast<double>(largest) * step);
      limit = std::max(least, std::min(largest - 1, next));
    }
  }

  /// The fastest stages that \p search finds within \p limit.
  [[nodiscard]] rp::RoundPartition within(rp::Bytes limit, SearchStages const& search) {
    problem_.fits = [&](rp::StageDirection direction, rp::LayerRange range) {
      return memory_.bytes(direction, range) <= limit;
    };
    return search(problem_);
  }

 private:
  rp::PartitionProblem problem_;
  rp::StageMemory const& memory_;
  StageSource const& source_;
};

/// One stage for each layer, the last resort.
BytePlan smallest_plan(std::span<rp::LayerBytes const> layers,
                       std::size_t micro_batches_per_round,
                       rp::Buffering const& buffering) {
  rp::Partition partition;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    partition.backward.push_back({layers.size() - 1 - i, 1});
    if (i + 1 < layers.size()) {
      partition.forward.push_back({i, 1});
    }
  }
  auto const use = device_use(rp::StageMemory(layers, buffering), partition);
  return {std::move(partition), micro_batches_per_round, buffering, use};
}

/// The search of \ref plan_within; empty if it finds nothing.
std::optional<BytePlan> try_within(rp::PartitionProblem const& problem,
                                   std::span<rp::LayerBytes const> layers,
                                   rp::Bytes budget,
                                   StageSource const& source) {
  for (auto const& buffering : modes) {
    rp::StageMemory const memory(layers, buffering);
    StageLadder ladder(problem, memory, source);
    std::optional<LimitedStages> found;
    auto too_large = unlimited;
    ladder.descend([&](LimitedStages rung) {
      if (device_use(memory, rung.stages.partition).total() <= budget) {
        found = std::move(rung);
        return true;
      }
      too_large = rung.limit;
      return false;
    });
    if (!found) {
      continue;
    }
    auto const take_if_fitting = [&](rp::Bytes limit, SearchStages const& search) {
      auto stages = ladder.within(limit, search);
      auto const fits = device_use(memory, stages.partition).total() <= budget;
      if (fits) {
        *found = {limit, std::move(stages)};
      }
      return fits;
    };
    if (!source.given) {
      constexpr int refinements = 8;  // between a limit that works and one that does not
      for (int i = 0; i < refinements && too_large < unlimited; ++i) {
        auto const middle = found->limit + (too_large - found->limit) / 2;
        if (middle == found->limit || !take_if_fitting(middle, source.quick)) {
          too_large = middle;
        }
      }
      take_if_fitting(found->limit, source.good);
    }
    auto const use = device_use(memory, found->stages.partition);
    return BytePlan{
        std::move(found->stages.partition), found->stages.micro_batches_per_round, buffering, use};
  }
  for (auto const& buffering : modes) {
    auto plan = smallest_plan(layers, source.micro_batches_per_round, buffering);
    if (!source.given && plan.bytes.total() <= budget) {
      return plan;
    }
  }
  return std::nullopt;
}

/// The stages that need the least budget.
BytePlan least_plan(rp::PartitionProblem const& problem,
                    std::span<rp::LayerBytes const> layers,
                    StageSource const& source) {
  std::optional<BytePlan> least;
  auto const consider = [&](BytePlan plan) {
    if (!least || plan.bytes.total() < least->bytes.total()) {
      least = std::move(plan);
    }
  };
  for (auto const& buffering : modes) {
    rp::StageMemory const memory(layers, buffering);
    StageLadder(problem, memory, source).descend([&](LimitedStages const& rung) {
      auto const& [partition, round, call] = rung.stages;
      consider({partition, round, buffering, device_use(memory, partition)});
      return false;
    });
    if (!source.given) {
      consider(smallest_plan(layers, source.micro_batches_per_round, buffering));
    }
  }
  return least.value();
}

}  // namespace

BytePlan plan_within(rp::PartitionProblem const& problem,
                     std::span<rp::LayerBytes const> layers,
                     std::optional<rp::Bytes> budget,
                     StageSource const& source) {
  if (auto plan = try_within(problem, layers, budget.value_or(unlimited), source)) {
    return *std::move(plan);
  }
  auto const least = least_plan(problem, layers, source);
  auto const largest = largest_stage(rp::StageMemory(layers, least.buffering), least.partition);
  throw rp::Error(
      rp::Errc::over_budget,
      fmt::format("{} bytes ({}) of device memory hold no stages: of the smallest the {} stage of "
                  "layers {} to {} needs most, {} bytes ({}); {} bytes ({}) would do for all",
                  *budget,
                  rp::format_bytes(*budget),
                  largest.direction == rp::StageDirection::forward ? "forward" : "backward",
                  largest.range.first,
                  largest.range.end() - 1,
                  largest.bytes,
                  rp::format_bytes(largest.bytes),
                  least.bytes.total(),
                  rp::format_bytes(least.bytes.total())));
}

}  // namespace plan_pipeline
