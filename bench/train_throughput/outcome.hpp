// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The results of a run of train_throughput, and their output.

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/nn/transformer_config.hpp>
#include <roundpipe/runtime/explain.hpp>
#include <throughput/speed.hpp>
#include <train_throughput/options.hpp>
#include <train_throughput/plan_shares.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace train_throughput {

/// The memory of one device, as its driver reports it.
struct DeviceUse {
  Bytes peak_bytes = 0;      ///< The most that the process held, set-up included.
  Bytes overhead_bytes = 0;  ///< Of that, all but the arena: context, modules, libraries.
};

struct Outcome {
  roundpipe::DeviceProperties device;
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
  std::vector<roundpipe::LayerCost> layer_costs;  ///< What the plan was made with.
  std::vector<roundpipe::Decision> decisions;     ///< Of the plan.
  std::string automatic;   ///< What chose micro-batches and rounds; empty: they were given.
  double t_max_s = 0;      ///< Of the slowest stage, for one micro-batch.
  double automatic_s = 0;  ///< Until that was chosen.
  double measured_s = 0;   ///< Of that, how long layers were measured,
  double planned_s = 0;    ///< and how long plans were made.
  bool checkpoints_of_layers = false;  ///< The host keeps every boundary.
  bool overlaps_rounds = false;        ///< Forward stages take turns with backward stages.
  std::size_t offloaded = 0;           ///< Micro-batches of a round whose saves go to the host.
  PlanShares shares;
  double setup_s = 0;
  std::vector<double> iterations_s;   ///< The measured iterations.
  std::size_t period = 1;             ///< After so many, stages begin on the same devices again.
  roundpipe::NetworkCost network;     ///< As several ranks have measured it.
  std::optional<double> predicted_s;  ///< From the costs measured before step 1.
  std::optional<double> refitted_s;   ///< From the times of layers and steps in the warm-up.
  double loss = 0;                    ///< Of the last iteration.
  throughput::Peak peak;
  std::size_t calls = 0;            ///< Covered by the next three figures.
  double computing_s = 0;           ///< A call's compute by the costs, for each device.
  double training_s = 0;            ///< Of the calls that the next two figures cover.
  std::vector<double> device_busy;  ///< As shares of it.
  roundpipe::Bubbles bubbles;       ///< In device seconds.
  std::vector<DeviceUse> device_memory;
  Bytes device_arena_bytes = 0;
  Bytes device_ledger_bytes = 0;  ///< The sum of the lines of the arena.
  Bytes host_bytes = 0;
  Bytes host_ledger_bytes = 0;
  Bytes resident_bytes = 0;  ///< The process's resident set, without pinned memory left unused.
  std::vector<roundpipe::LedgerLine> ledger;
  roundpipe::Timeline timeline;  ///< Of the last iterations, if a trace is requested.
};

/// Of the last whole periods, within which iterations are not alike; of all measured iterations
/// where there is no whole one.
[[nodiscard]] throughput::Speed speed_of(Options const& o,
                                         roundpipe::nn::TransformerConfig const& config,
                                         Outcome const& outcome);

/// What is planned, for people: the cut, each decision with its reason, and the ledger. Needs what
/// is known before training.
void print_plan(std::ostream& out,
                Options const& o,
                roundpipe::nn::TransformerConfig const& config,
                Outcome const& outcome);
/// What was measured, for people.
void print(std::ostream& out,
           Options const& o,
           roundpipe::nn::TransformerConfig const& config,
           Outcome const& outcome);
/// For programs: one object.
[[nodiscard]] nlohmann::ordered_json to_json(Options const& o,
                                             roundpipe::nn::TransformerConfig const& config,
                                             Outcome const& outcome);

}  // namespace train_throughput
