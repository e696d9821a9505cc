// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Small changes of a partition, tried one after another.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// How many layers each stage has, in execution order.
struct StageSizes {
  std::vector<std::size_t> forward;
  std::vector<std::size_t> backward;  ///< The fused stage first.

  [[nodiscard]] static StageSizes of(Partition const& partition);
  /// The stages of these sizes of a model of \p layers layers.
  [[nodiscard]] Partition partition(std::size_t layers) const;
};

/// \brief Moves from one partition to the next as long as that is an improvement.
///
/// `judge(sizes)` says whether a partition is better than the best so far; if so, it becomes the
/// best. All sizes are positive and cover the model. The moves: a layer from any stage to any other
/// of its direction, near ones first (the stages between them shift); a stage cut in two, two
/// neighbours joined; a layer to or from the fused stage; sizes put in order.
class StageMoves {
 public:
  enum class Verdict { better, no_better, stop };
  using Judge = std::function<Verdict(StageSizes const&)>;

  StageMoves(StageSizes start, Judge judge) : best_(std::move(start)), judge_(std::move(judge)) {}

  /// Tries all moves until none of them is an improvement, or the judge stops it.
  /// \returns the best sizes.
  [[nodiscard]] StageSizes const& run();

 private:
  using Side = std::vector<std::size_t> StageSizes::*;

  /// The first stage that a move may change alone. The fused stage also bounds the forward stages.
  static std::size_t begin_of(Side side) { return side == &StageSizes::forward ? 0 : 1; }

  bool attempt(StageSizes sizes);

  void shift(Side side);

  void cut_and_join(Side side);

  void sort(Side side);

  /// Gives the fused stage a layer of its neighbours, the last forward and the next backward stage,
  /// or them one of its own. A neighbour may vanish; the layer may become new stages.
  void resize_fused();

  StageSizes best_;
  Judge judge_;
  bool moved_ = false;
  bool stopped_ = false;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/stage_moves.ipp>
#endif
