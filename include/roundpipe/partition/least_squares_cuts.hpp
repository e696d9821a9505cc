// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts layers into stages with the least sum of squared times, by dynamic programming.

#include <roundpipe/concepts/partition_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace roundpipe::detail {

/// \brief For every number of stages, and every place where the last of them ends, the most even
/// cut: the one with the least sum of the squares of its stages' shares. Of equals, the one whose
/// last stages in layer order are longest.
class LeastSquaresCuts {
 public:
  /// \param stages       how many stages a cut has at most
  /// \param ends         how many places there are: place p is behind the first p layers
  /// \param least_layers of a stage: 0, if a stage may be empty, or 1
  /// \param first_of     `(stage, end)`: the first layer of the longest stage that is tried
  /// \param share        `(stage, first, end)`: the time of a stage in any unit; infinite: it is
  ///                     not tried
  /// \param fits         `(first, end)`: asked only for stages of cuts that are the best so far
  template <class FirstOf, class Share, class Fits>
  LeastSquaresCuts(std::size_t stages,
                   std::size_t ends,
                   std::size_t least_layers,
                   FirstOf const& first_of,
                   Share const& share,
                   Fits&& fits)
      : ends_(ends), squares_((stages + 1) * ends, unreachable), firsts_((stages + 1) * ends) {
    squares_[0] = 0;
    for (std::size_t stage = 0; stage < stages; ++stage) {
      for (auto end = (stage + 1) * least_layers; end < ends_; ++end) {
        auto& least = squares_[at(stage + 1, end)];
        auto const begin = first_of(stage, end);
        for (auto next = end + 1 - least_layers; next-- > begin;) {
          auto const before = squares_[at(stage, next)];
          if (before == unreachable) {
            continue;
          }
          auto const s = share(stage, next, end);
          auto const squares = before + s * s;
          // Sums are rounded: those that differ in the last digits only are equal.
          if (squares <= least * (1 + 1e-9) && squares < unreachable && fits(next, end)) {
            least = squares;
            firsts_[at(stage + 1, end)] = next;
          }
        }
      }
    }
  }

  /// The cut of the first \p layers layers into \p stages stages, in layer order; nothing when
  /// there is none.
  [[nodiscard]] std::optional<std::vector<LayerRange>> cut(std::size_t stages,
                                                           std::size_t layers) const {
    if (squares_[at(stages, layers)] == unreachable) {
      return std::nullopt;
    }
    std::vector<LayerRange> ranges;
    for (auto end = layers; stages > 0; --stages) {
      auto const first = firsts_[at(stages, end)];
      ranges.push_back({first, end - first});
      end = first;
    }
    std::reverse(ranges.begin(), ranges.end());
    return ranges;
  }

 private:
  static constexpr double unreachable = std::numeric_limits<double>::infinity();

  [[nodiscard]] std::size_t at(std::size_t stages, std::size_t end) const noexcept {
    return stages * ends_ + end;
  }

  std::size_t ends_;
  std::vector<double> squares_;      // by number of stages, then by the end of the last one
  std::vector<std::size_t> firsts_;  // likewise: the first layer of the last stage
};

}  // namespace roundpipe::detail
