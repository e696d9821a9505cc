// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What an iteration takes at least: a bound of forecasts, known without a simulation.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <span>

namespace roundpipe {

/// What a bound knows of a training call besides its stages.
struct CallOutline {
  ScheduleShape shape;
  bool dealt_round_robin = false;  ///< \ref deals_round_robin
  Bytes handed_on = 0;             ///< By `Planner::handed_on`.
};

/// The longest of these: the passes of \p stages, training stages of \p blocks, on devices that
/// never wait; their saves and parameters, and what they hand on, on links that never rest, up,
/// down, and both through the host's memory. A forecast for \p machine is no less, but for work
/// that its last iterations leave to those behind them.
[[nodiscard]] double least_iteration_seconds(std::span<StageLayout const> stages,
                                             ParameterBlocks const& blocks,
                                             CallOutline const& call,
                                             SimulationOptions const& machine);

/// What \p stages take where their slots are dealt round robin and do not overlap, by \ref
/// SlotSimulation: devices wait for each other, but for no copy. Micro-batches take what they take
/// on average, in the round that recomputes least. \p costs are those of passes, by layer. A
/// forecast of many iterations is no less but by what varies from one to the next, which has been
/// up to 3 %.
[[nodiscard]] double slot_iteration_seconds(std::span<StageLayout const> stages,
                                            ScheduleShape const& shape,
                                            std::span<LayerCost const> costs);

/// The bound of \ref forecast_training_seconds, on the same machine: the longer of both where slots
/// are dealt round robin, else the first.
[[nodiscard]] double least_training_seconds(std::span<StageLayout const> stages,
                                            ParameterBlocks const& blocks,
                                            CallOutline const& call,
                                            CostModel const& costs,
                                            DeviceProperties const& device);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/least_time.ipp>
#endif
