// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Times of layers, estimated from FLOPs and bytes, or taken from a measurement; and the
/// network's.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// What exchanges of several ranks take, all at once.
struct NetworkCost {
  double bytes_per_second = 0;  ///< That a rank receives from all others together; 0: no time.
  double latency_s = 0;         ///< Of each exchange, besides.

  [[nodiscard]] bool operator==(NetworkCost const&) const = default;
};

/// The time of every layer for one micro-batch at capacity, and what ranks' exchanges take.
class CostModel {
 public:
  explicit CostModel(std::vector<LayerCost> layers) : layers_(std::move(layers)) {}

  /// Forward time = FLOPs / peak + bytes moved / memory bandwidth; the backward moves and computes
  /// twice as much unless the layer counts its own \ref FlopCount. Replays take their share of the
  /// forward's FLOPs. A layer that does not count is estimated as a matrix product: 2 FLOPs a
  /// parameter and position.
  /// \throws Error (invalid_argument) for a layer that counts replays, and no forward.
  [[nodiscard]] static CostModel estimate(ModelDescription const& model,
                                          DeviceProperties const& device);

  /// One entry a layer.
  [[nodiscard]] std::vector<LayerCost> const& layers() const noexcept { return layers_; }

  /// Forward and backward of all layers.
  [[nodiscard]] double micro_batch_s() const noexcept;

  /// No time where nobody has set it.
  [[nodiscard]] NetworkCost network() const noexcept { return network_; }
  void set_network(NetworkCost network) noexcept { network_ = network; }

 private:
  std::vector<LayerCost> layers_;
  NetworkCost network_;
};

/// \p costs, with the \ref LayerCost::round_s of devices like \p device: of each trained parameter
/// the sum of gradients is written once and, where it has another type, read and written again, at
/// memory bandwidth.
[[nodiscard]] CostModel with_round_costs(CostModel const& costs,
                                         ModelDescription const& model,
                                         DeviceProperties const& device);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/cost_model.ipp>
#endif
