// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The results of a run of train_throughput, and their output.

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "options.hpp"

namespace train_throughput {

/// The memory of one device, as its driver reports it.
struct DeviceUse {
  Bytes used_bytes = 0;      ///< By everything, after the last step.
  Bytes overhead_bytes = 0;  ///< Of that, all but the arena: context, modules, libraries.
};

struct Outcome {
  std::string device;
  std::uint64_t parameters = 0;
  std::vector<std::size_t> forward_stages;  ///< Layers of each.
  std::vector<std::size_t> backward_stages;
  /// The costs of a layer that differs from the layer before, for one micro-batch.
  struct Cost {
    std::size_t layer = 0;
    double forward_s = 0;
    double backward_s = 0;
  };
  std::vector<Cost> costs;
  std::string automatic;   ///< What chose micro-batches and rounds; empty: they were given.
  double t_max_s = 0;      ///< Of the slowest stage, for one micro-batch.
  double automatic_s = 0;  ///< Until that was chosen.
  bool checkpoints_of_layers = false;  ///< The host keeps every boundary.
  std::size_t offloaded = 0;           ///< Micro-batches of a round whose saves go to the host.
  double setup_s = 0;
  std::vector<double> iterations_s;   ///< The measured iterations.
  std::optional<double> predicted_s;  ///< From the costs measured before step 1.
  std::optional<double> refitted_s;   ///< From the times of layers and steps in the warm-up.
  double loss = 0;                    ///< Of the last iteration.
  double peak_flops = 0;              ///< Of one device.
  std::string peak_source;
  double window_s = 0;              ///< Of all measured iterations.
  std::size_t calls = 0;            ///< Covered by the next three figures.
  double computing_s = 0;           ///< A call's compute by the costs, for each device.
  double training_s = 0;            ///< Of the calls that the next two figures cover.
  std::vector<double> device_busy;  ///< As shares of it.
  roundpipe::Bubbles bubbles;       ///< In device seconds.
  std::vector<DeviceUse> device_memory;
  Bytes device_arena_bytes = 0;
  Bytes host_bytes = 0;
  std::vector<roundpipe::LedgerLine> ledger;
  roundpipe::Timeline timeline;  ///< Of the last iterations, if a trace is requested.
};

/// The least FLOPs that training takes for one iteration: 6 for each weight of a product and token,
/// and causal attention's two products of half the square of the context, forward and twice
/// backward.
[[nodiscard]] double model_flops(roundpipe::nn::TransformerConfig const& config, Options const& o);

/// For people.
void print(std::ostream& out,
           Options const& o,
           roundpipe::nn::TransformerConfig const& config,
           Outcome const& outcome);
/// For programs: one object.
void write_json(std::ostream& out,
                Options const& o,
                roundpipe::nn::TransformerConfig const& config,
                Outcome const& outcome);

}  // namespace train_throughput
