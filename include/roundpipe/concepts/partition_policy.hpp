// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What cuts a model into forward and backward stages.

#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace roundpipe {

/// Consecutive layers.
struct LayerRange {
  std::size_t first = 0;
  std::size_t count = 0;

  [[nodiscard]] constexpr std::size_t end() const noexcept { return first + count; }
  [[nodiscard]] constexpr bool contains(std::size_t layer) const noexcept {
    return layer >= first && layer < end();
  }
  friend constexpr bool operator==(LayerRange const&, LayerRange const&) noexcept = default;
};

/// The times of one layer in seconds; passes are for one micro-batch.
struct LayerCost {
  double forward_s = 0;
  double backward_s = 0;  ///< Without recomputation.
  /// The saving forward that a backward stage repeats; none: the same as \c forward_s.
  std::optional<double> recompute_s = std::nullopt;
  double optimizer_s = 0;  ///< The update of the layer on the host.
  /// By the save level that it finds: the recomputation when nobody reads its output. Where it is
  /// not known, the same as \ref recomputing_s.
  std::vector<double> replay_s = {};
  /// What a round adds to the backward of its last micro-batch: before the first one, sums of
  /// gradients are cleared, and behind the last one, they are rounded.
  double round_s = 0;

  [[nodiscard]] double recomputing_s() const noexcept { return recompute_s.value_or(forward_s); }
  [[nodiscard]] double replaying_s(std::size_t level) const noexcept {
    return level < replay_s.size() ? replay_s[level] : recomputing_s();
  }
};

/// The stages of a model, in execution order. `backward.front()` is the *fused* stage: it runs its
/// layers forward (saving) and backward. `forward` covers the layers before the fused stage.
/// `backward` covers all layers, last ones first.
struct Partition {
  std::vector<LayerRange> forward;
  std::vector<LayerRange> backward;

  /// S: the number of stages.
  [[nodiscard]] std::size_t size() const noexcept { return forward.size() + backward.size(); }
  friend bool operator==(Partition const&, Partition const&) = default;
};

enum class StageDirection { forward, backward };

/// The input of a partition policy.
struct PartitionProblem {
  std::vector<LayerCost> costs = {};       ///< One for each layer.
  std::size_t devices = 1;                 ///< N
  std::size_t micro_batches_per_call = 1;  ///< M: of a whole call, over all rounds.
  /// Whether a stage of these layers fits into a device. Empty: every stage fits.
  std::function<bool(StageDirection, LayerRange)> fits = {};
  /// The choices of M_R for a policy that plans rounds: divisors of M. Empty: the divisors that are
  /// at least N, or M alone where there is no such divisor.
  std::vector<std::size_t> micro_batches_per_round = {};
};

/// \brief A pure function from costs and limits to stages.
///
/// Semantics:
/// 1. `partition(problem)` returns stages as \ref Partition describes, none of them empty; each
///    stage `fits`.
/// 2. It throws `Error` (over_budget) when no partition fits.
/// 3. Equal problems give equal partitions; reason: another process can repeat a plan.
///
/// Opt-in: `bool yields_to_forecast()`, whether the planner may take other stages where its
/// forecast says that they are faster; without this member it may not (see \ref
/// yields_to_forecast).
///
/// Satisfied by: `Partitioner`, `SimulatedPartitioner`, which yield, and `UniformPartitioner`.
template <class P>
concept PartitionPolicy =
    std::copy_constructible<P> && requires(P const& policy, PartitionProblem const& problem) {
      { policy.partition(problem) } -> std::same_as<Partition>;
    };

/// \brief A policy that says whether the planner may take other stages.
template <class P>
concept HasYieldsToForecast = requires(P const& policy) {
  { policy.yields_to_forecast() } -> std::convertible_to<bool>;
};

/// Whether a planner may take other stages than those of \p policy.
template <PartitionPolicy P>
[[nodiscard]] constexpr bool yields_to_forecast(P const& policy) {
  if constexpr (HasYieldsToForecast<P>) {
    return policy.yields_to_forecast();
  } else {
    return false;
  }
}

}  // namespace roundpipe
