// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long the actions of graphs take that do not go through a link.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace roundpipe {

/// Times of compute and of the host's work.
struct ComputeCosts {
  std::vector<LayerCost> layers;  ///< At device speed 1.
  /// By device; none: all 1. A device of speed 0.5 takes twice as long.
  std::vector<double> device_speeds;
  /// By parameter block, the seconds of its optimizer step; none: its bytes at \c host rate.
  std::vector<double> step_s;
  double host_bytes_per_second = 0;  ///< Of what the host's lanes go through; 0: they take no time.
};

/// Looks up times of actions.
class ActionTimes {
 public:
  /// \throws Error (invalid_argument) when speeds are not positive, or not one a device.
  ActionTimes(ComputeCosts costs, std::size_t devices);

  /// The seconds of an action of a compute lane or a host's lane.
  /// \throws Error (invalid_argument) when there is no cost of its layer or block.
  [[nodiscard]] double operator()(UnrolledAction const& unrolled);

 private:
  [[nodiscard]] double pass_seconds(UnrolledAction const& unrolled);

  /// Whether \p layer runs forward in \p graph; else it is in the fused stage, whose saving forward
  /// is its first.
  [[nodiscard]] bool runs_forward(ActionGraph const& graph, LayerId layer);

  ComputeCosts costs_;
  std::map<ActionGraph const*, std::set<LayerId>> forwards_;  // layers, by graph
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/action_times.ipp>
#endif
