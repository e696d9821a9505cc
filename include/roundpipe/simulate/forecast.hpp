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
/// devices copy together in one direction, and that memory by 15 % where they are several \p
/// devices, to compare plans. Copies are never as even as those that measured the links, and others
/// use the host, too. A plan that needs all that links can carry loses more there than it gains
/// else. 12 blocks of Llama 3.1 8B on two H100s, simulated: with links a twentieth slower than
/// planned for, such a plan loses 3.6 % of its speed. Planned with this margin it loses 0.6 %, and
/// 0.5 % where links are as measured. All of 8B on four H200s, likewise simulated, two of which run
/// stages that save, at 47 GB/s each: where all downloads together have 100 GB/s, 90, 85 or 80, the
/// plan of before that was a limit takes 6.02, 6.15, 6.25 and 6.31 s, the one with the tenth 6.05
/// to 6.06 s. And on two, where all copies together had 162 GB/s by a probe: if they have 162 GB/s,
/// 146, 130 or 114, a plan for a twentieth less takes 11.18, 11.20, 11.90 and 12.99 s, one for 15 %
/// less 11.36, 11.36, 11.40 and 11.97 s. Two minutes before, the probe had found 143 GB/s there.
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
