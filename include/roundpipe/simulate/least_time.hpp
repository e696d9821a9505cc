// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What an iteration takes at least: a bound of forecasts, known without a simulation.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <span>

namespace roundpipe {

/// The longest of these: the passes of \p stages, training stages of \p blocks, on devices that
/// never wait; their saves and parameters on links that never rest, up, down, and both through the
/// host's memory. \p shape says how many devices, rounds and micro-batches there are. A forecast
/// for \p machine is no less, but for work that its last iterations leave to those behind them.
[[nodiscard]] double least_iteration_seconds(std::span<StageLayout const> stages,
                                             ParameterBlocks const& blocks,
                                             ScheduleShape const& shape,
                                             SimulationOptions const& machine);

/// The bound of \ref forecast_training_seconds, on the same machine.
[[nodiscard]] double least_training_seconds(std::span<StageLayout const> stages,
                                            ParameterBlocks const& blocks,
                                            ScheduleShape const& shape,
                                            CostModel const& costs,
                                            DeviceProperties const& device);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/least_time.ipp>
#endif
