// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The search behind `Partitioner`: the shortest t_max for each number of stages that could
/// be the best.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/partition/fewest_stages.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace roundpipe::detail {

/// One search for the best partition of one problem.
class PartitionSearch {
 public:
  /// \p problem must outlive it.
  explicit PartitionSearch(PartitionProblem const& problem)
      : problem_(problem),
        ticks_(problem.costs),
        forward_(problem, ticks_, StageDirection::forward),
        backward_(problem, ticks_, StageDirection::backward),
        fused_fits_(problem.costs.size(), Fit::unknown) {}

  /// The first layer that does not even fit alone; nothing when each of them does.
  [[nodiscard]] std::optional<std::size_t> misfit(StageDirection direction);

  /// The best partition; nothing when none fits.
  [[nodiscard]] std::optional<Partition> run();

 private:
  enum class Fit : std::uint8_t { unknown, no, yes };

  /// The fewest stages for some t_max, with the largest fused stage.
  struct Cut {
    std::size_t fused_first = 0;
    std::size_t forward = 0;   ///< How many forward stages.
    std::size_t backward = 0;  ///< How many backward stages, without the fused one.
    Ticks t_max = 0;           ///< Of these stages: what was asked for, or less.

    [[nodiscard]] std::size_t stages() const noexcept { return forward + 1 + backward; }
  };

  /// M S + N (N - 1)
  [[nodiscard]] double weight(std::size_t stages) const noexcept;
  [[nodiscard]] double value(Cut const& cut) const noexcept {
    return weight(cut.stages()) * static_cast<double>(cut.t_max);
  }

  /// The longest t_max with which \p stages stages are as good as the best so far, or a bit more.
  [[nodiscard]] Ticks promising(std::size_t stages) const;

  /// No partition has fewer stages that take no longer than \p t_max.
  [[nodiscard]] std::size_t at_least(Ticks t_max) const;

  void consider(Cut const& cut);

  /// Finds a good partition, if there is any at all.
  void begin();

  /// The cut into \p stages stages or fewer with the shortest t_max; \p enough is one such cut.
  [[nodiscard]] Cut shortest(std::size_t stages, Cut enough);

  [[nodiscard]] bool fused_fits(std::size_t first);

  /// The fewest stages none of which takes longer than \p t_max; nothing when there are none. Sets
  /// \c next_: any limit from \p t_max up to, but without, \c next_ gives the same answer.
  [[nodiscard]] std::optional<Cut> cut(Ticks t_max);

  [[nodiscard]] Partition result();

  PartitionProblem const& problem_;
  StageTicks ticks_;
  FewestStages forward_;
  FewestStages backward_;
  std::vector<Fit> fused_fits_;
  std::optional<Cut> best_;
  Ticks next_ = 0;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/partition_search.ipp>
#endif
