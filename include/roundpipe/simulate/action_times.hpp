// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The durations of actions that do not use a link.

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

/// The times of compute and of the host's work.
struct ComputeCosts {
  std::vector<LayerCost> layers;  ///< At device speed 1.
  /// By device; empty: all 1. A device of speed 0.5 takes twice as long.
  std::vector<double> device_speeds;
  /// By parameter block, the seconds of its optimizer step; empty: its bytes at the \c host rate.
  std::vector<double> step_s;
  double host_bytes_per_second = 0;  ///< The rate of host lanes; 0: they take no time.
  /// Of a device's memory: its compute waits while copies move their bytes at this rate; 0: it does
  /// not. Copies both ways, 97 GB/s together, slow blocks of Llama 3.1 8B and Qwen3 1.7B on an
  /// H100, whose memory has 3.35 TB/s, by 2.8 and 2.3 %: by about the share of the memory that they
  /// use.
  double device_memory_bytes_per_second = 0;
  /// At which a rank receives from all others together, one action after another, and sends as
  /// fast; 0: that takes no time. Ranks like this one on a switch that carries what all send at
  /// once.
  double network_bytes_per_second = 0;
  double network_latency_s = 0;  ///< Of each reduction and gather, besides.
};

/// Looks up the times of actions.
class ActionTimes {
 public:
  /// \throws Error (invalid_argument) when speeds are not positive, or not one for each device.
  ActionTimes(ComputeCosts costs, std::size_t devices);

  /// The seconds of an action on a compute lane or a host lane that starts at \p now_s. Actions
  /// that use the network are given in the order of their starts: they wait for it.
  /// \throws Error (invalid_argument) when the cost of its layer or block is missing.
  [[nodiscard]] double operator()(UnrolledAction const& unrolled, double now_s);

 private:
  [[nodiscard]] double pass_seconds(UnrolledAction const& unrolled);

  /// Whether \p layer runs forward in \p graph. If not, the layer is in the fused stage, whose
  /// saving forward is its first.
  [[nodiscard]] bool runs_forward(ActionGraph const& graph, LayerId layer);

  ComputeCosts costs_;
  std::map<ActionGraph const*, std::set<LayerId>> forwards_;  // the layers of each graph
  double network_free_s_ = 0;  // when all that has begun to come from other ranks is there
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/action_times.ipp>
#endif
