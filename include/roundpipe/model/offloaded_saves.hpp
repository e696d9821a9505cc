// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which saved activations wait on the host between a layer's forward and its backward.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// \brief Of each round, the micro-batches of each layer whose saved activations go to the host
/// from the forward stage, and come back for the backward stage. The backward stage recomputes the
/// others. It means nothing for layers of the fused stage.
///
/// The micro-batches of a layer are spread over the round as evenly as can be, and those of
/// neighbouring layers are not the same, so that the link has as much to carry in each window.
class OffloadedSaves {
 public:
  OffloadedSaves() = default;  ///< None.

  /// \param counts Of each layer of the model: how many micro-batches of a round.
  /// \throws Error (invalid_argument) for more micro-batches than a round has.
  OffloadedSaves(std::vector<std::size_t> counts, std::size_t micro_batches_per_round)
      : counts_(std::move(counts)), micro_batches_(micro_batches_per_round) {
    for (auto const count : counts_) {
      require(count <= micro_batches_,
              Errc::invalid_argument,
              "a round has fewer micro-batches than it should offload the saves of");
    }
  }

  /// How many micro-batches of a round.
  [[nodiscard]] std::size_t count(std::size_t layer) const noexcept {
    return layer < counts_.size() ? counts_[layer] : 0;
  }
  [[nodiscard]] bool any(std::size_t layer) const noexcept { return count(layer) > 0; }
  /// Of all micro-batches.
  [[nodiscard]] double share(std::size_t layer) const noexcept {
    return static_cast<double>(count(layer)) / static_cast<double>(micro_batches_);
  }
  /// Whether the layer is never recomputed.
  [[nodiscard]] bool all(std::size_t layer) const noexcept {
    return any(layer) && count(layer) == micro_batches_;
  }
  [[nodiscard]] bool has(std::size_t layer, std::size_t micro_batch) const noexcept {
    if (!any(layer)) {
      return false;
    }
    auto const before = [&](std::size_t m) {
      return (m * count(layer) + shift(layer)) / micro_batches_;
    };
    return before(micro_batch + 1) > before(micro_batch);
  }

 private:
  /// Less than a round: the golden section of rounds for each layer.
  [[nodiscard]] std::size_t shift(std::size_t layer) const noexcept {
    return layer * 618 * micro_batches_ / 1000 % micro_batches_;
  }

  std::vector<std::size_t> counts_;  // by layer
  std::size_t micro_batches_ = 1;
};

/// \p costs of a micro-batch on average: what is \p offloaded is not recomputed.
[[nodiscard]] inline std::vector<LayerCost> average_costs(std::vector<LayerCost> costs,
                                                          OffloadedSaves const& offloaded) {
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (offloaded.any(i)) {
      costs[i].recompute_s = costs[i].recomputing_s() * (1 - offloaded.share(i));
    }
  }
  return costs;
}

}  // namespace roundpipe
