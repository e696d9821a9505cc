// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How an iteration scales with hosts that each have the same batch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "adaptive.hpp"

namespace plan_pipeline {

/// The hosts and networks that are compared.
struct ScalingOptions {
  std::vector<std::size_t> hosts;
  std::vector<double> network_gbits;  ///< Of a host's link.
  double latency_s = 0;               ///< Of a message.
};

/// The efficiency is the time of one host alone over that of an iteration on several, where each
/// has the same batch; 0 where nothing fits.
struct Scaling {
  /// From this efficiency on the network hides.
  static constexpr double hidden = 0.97;

  ScalingOptions options;
  std::size_t most_hosts = 1;
  std::int64_t sequences = 0;                 ///< Of each host, for \c by_hosts.
  std::vector<std::vector<double>> by_hosts;  ///< By hosts, by network.
  std::vector<std::int64_t> batches;          ///< Sequences of each host, growing.
  std::vector<std::vector<double>> by_batch;  ///< Of the most hosts: by batch, by network.
  std::vector<std::optional<std::int64_t>> hides_from;  ///< By network: the first batch that hides.
};

/// Forecasts hosts that run \p plan in one round, each with the plan's batch, and then with 1 to 16
/// of its micro-batches a device.
[[nodiscard]] Scaling scaling_of(AdaptivePlanner const& planner,
                                 AdaptivePlan const& plan,
                                 ScalingOptions options);

/// Two tables.
[[nodiscard]] std::string scaling_text(Scaling const& scaling);

/// The efficiency of the most hosts by the batch of each, a line for each network.
void write_scaling(std::ostream& out, AdaptivePlanner const& planner, Scaling const& scaling);

}  // namespace plan_pipeline
