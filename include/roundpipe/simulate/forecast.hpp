// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The time of a training call or iteration in the steady state.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <cstddef>

namespace roundpipe {

/// The machine of a training loop that waits for each loss. Layers and ranks' exchanges take
/// what \p costs says, copies and the host's work what \p device says, and copies take the
/// device's memory from compute.
[[nodiscard]] SimulationOptions training_machine(CostModel const& costs,
                                                 DeviceProperties const& device);

/// The seconds of one of many consecutive training calls without steps between them.
/// \throws Error (invalid_argument) like \ref simulate.
[[nodiscard]] double forecast_call_seconds(ActionGraph const& call,
                                           SimulationOptions const& options);

/// The seconds of one of many consecutive iterations. Each is a \p call and a \p step, with all
/// waits for earlier graphs. The \p warm_up iterations before do not count. More than 2 are needed
/// where a network is the limit: compute runs ahead until its buffers are full.
/// \throws Error (invalid_argument) like \ref simulate.
[[nodiscard]] double forecast_iteration_seconds(ActionGraph const& call,
                                                ActionGraph const& step,
                                                SimulationOptions const& options,
                                                std::size_t warm_up = 2);

/// \p machine with its links and its host's memory slower by a twentieth, by a tenth what all
/// devices copy together in one direction, and the host's memory by 15 % where \p devices are
/// several, to compare plans. Copies are never as even as those that measured the links, and others
/// use the host, too: on hosts with two H200s a probe found 120 to 173 GB/s for all copies. A plan
/// that needs all that links can carry loses more there than it gains else: one took 6 % longer
/// with a fifth less of the host's memory. docs/numbers.md, "Rounds that overlap", has what plans
/// lose with and without these margins.
[[nodiscard]] SimulationOptions with_link_margin(SimulationOptions machine, std::size_t devices);

/// \ref forecast_iteration_seconds on the \ref training_machine of \p costs and \p device, \ref
/// with_link_margin: for `PipelineOptions::forecast`.
[[nodiscard]] double forecast_training_seconds(ActionGraph const& call,
                                               ActionGraph const& step,
                                               CostModel const& costs,
                                               DeviceProperties const& device);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/forecast.ipp>
#endif
