// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The device bytes of every stage of a model that is known by plain figures.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

namespace detail {

/// The maximum of any consecutive values, in constant time.
class RangeMaximum {
 public:
  explicit RangeMaximum(std::vector<Bytes> values);
  /// Of the values [first, end), which are not none.
  [[nodiscard]] Bytes of(std::size_t first, std::size_t end) const {
    auto const level = static_cast<std::size_t>(std::bit_width(end - first) - 1);
    return std::max(levels_[level][first], levels_[level][end - (std::size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<Bytes>> levels_;  // level k: of 2^k values each
};

}  // namespace detail

/// The bytes of a stage, by class.
struct StageBytes {
  Bytes parameters = 0;
  Bytes gradients = 0;
  Bytes activations = 0;  ///< Input and output boundaries, and their gradients.
  Bytes saved = 0;        ///< What layers save and hand to each other until their backward.
  Bytes workspace = 0;    ///< With two places for what passes between layers.

  [[nodiscard]] Bytes total() const noexcept {
    return parameters + gradients + activations + saved + workspace;
  }
};

/// \brief What a device needs to run one stage, in constant time for any stage. The terms are those
/// of \ref lay_out_stage and \ref plan_device_memory, so the result agrees with \ref StageBudget.
/// It rounds every figure up to \ref tensor_alignment_bytes.
///
// clang-format off
/// | what                                    | forward           | backward                   | times         |
/// |-----------------------------------------|-------------------|----------------------------|---------------|
/// | parameters                              | sum               | sum                        | `parameters`  |
/// | gradients                               | none              | sum                        | `gradients`   |
/// | input boundary                          | one               | one                        | `activations` |
/// | output boundary, or the output's gradient | one             | one; fused: a loss         | `activations` |
/// | gradient of the input boundary          | none              | one                        | `activations` |
/// | saved activations                       | none              | sum                        | 1             |
/// | boundaries of the stage's layers        | twice the maximum | sum, and twice the maximum | 1             |
/// | workspace                               | maximum           | maximum                    | 1             |
// clang-format on
///
/// Twice the maximum: inner boundaries of a forward stage, and inner gradients of a backward stage,
/// alternate between two places. A backward stage recomputes all its layers before it runs any of
/// them backward, so what they save and hand over adds up, but for the output of the last one,
/// which nobody reads. Every boundary counts as if it had a gradient.
class StageMemory {
 public:
  /// \p buffering: how many entries the rings have.
  explicit StageMemory(std::span<LayerBytes const> layers, Buffering buffering = {});

  [[nodiscard]] std::size_t layers() const noexcept { return boundaries_.size(); }

  /// The bytes of one stage, by class. The backward stage that holds the last layer is the fused
  /// one. \throws Error (invalid_argument) when the model has no such layers.
  [[nodiscard]] StageBytes terms(StageDirection direction, LayerRange range) const;

  /// The bytes of one stage. \throws Error as \ref terms.
  [[nodiscard]] Bytes bytes(StageDirection direction, LayerRange range) const {
    return terms(direction, range).total();
  }

  /// The smallest device memory with which a partition fits: the least that the largest stage of a
  /// partition needs; by dynamic programming in O(L^2).
  [[nodiscard]] Bytes least() const;

 private:
  using Figure = Bytes LayerBytes::*;

  static std::vector<Bytes> aligned(std::span<LayerBytes const> layers, Figure figure);
  /// By number of layers, without all: the least that the largest of the stages that cover so many
  /// first layers needs.
  [[nodiscard]] std::vector<Bytes> least_of(StageDirection direction) const;

  Buffering buffering_;
  /// By kind of stage: what it holds of so many of the model's first layers.
  std::array<std::vector<PassBytes>, stage_kind_count> sums_;
  std::vector<Bytes> boundaries_;  // by layer
  detail::RangeMaximum largest_boundary_;
  detail::RangeMaximum largest_workspace_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/memory/impl/stage_memory.ipp>
#endif
