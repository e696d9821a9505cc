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

/// The times of one layer in seconds; of passes: for one micro-batch.
struct LayerCost {
  double forward_s = 0;
  double backward_s = 0;  ///< Without recomputation.
  /// Of the saving forward that a backward stage runs once more; none: as long as the forward.
  std::optional<double> recompute_s = std::nullopt;
  double optimizer_s = 0;  ///< Of the layer's update on the host.

  [[nodiscard]] double recomputing_s() const noexcept { return recompute_s.value_or(forward_s); }
};

/// The stages of a model, in execution order. `backward.front()` is the *fused* stage: it runs its
/// layers forward (saving) and backward; `forward` covers the layers before it, and `backward`
/// covers all layers, last ones first.
struct Partition {
  std::vector<LayerRange> forward;
  std::vector<LayerRange> backward;

  /// S: how many stages there are.
  [[nodiscard]] std::size_t size() const noexcept { return forward.size() + backward.size(); }
  friend bool operator==(Partition const&, Partition const&) = default;
};

enum class StageDirection { forward, backward };

/// What a partition policy is given.
struct PartitionProblem {
  std::vector<LayerCost> costs;   ///< One a layer.
  std::size_t devices = 1;        ///< N
  std::size_t micro_batches = 1;  ///< M: of a whole call, all rounds.
  /// Whether a stage of these layers fits into a device; empty: every stage does.
  std::function<bool(StageDirection, LayerRange)> fits = {};
  /// M_R: what a policy that sees rounds may choose from, divisors of M; empty: the divisors that
  /// are at least N, or M alone where there is none.
  std::vector<std::size_t> micro_batches_per_round = {};
};

/// \brief A pure function from costs and limits to stages.
///
/// Semantics:
/// 1. `partition(problem)` returns stages as \ref Partition describes; each one `fits`.
/// 2. It throws `Error` (over_budget) when no partition does.
/// 3. Equal problems give equal partitions; reason: a plan can be made again elsewhere.
///
/// Satisfied by: `Partitioner`, `SimulatedPartitioner`, `ChosenPartitioner`, `UniformPartitioner`.
template <class P>
concept PartitionPolicy =
    std::copy_constructible<P> && requires(P const& policy, PartitionProblem const& problem) {
      { policy.partition(problem) } -> std::same_as<Partition>;
    };

}  // namespace roundpipe
