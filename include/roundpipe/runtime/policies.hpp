// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The policies of a pipeline, by name.

#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/any_policy.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>

namespace roundpipe {

/// A \ref Planner of any policies.
using AnyPlanner = Planner<AnySchedule, AnyTransfers, AnyProtocol, AnyPartitioner>;

/// Who decides what in a pipeline. Name those that are not the library's own, in this order:
///
///     Policies{.transfers = UnplannedTransfers{}, .partitioner = Mine{}}
struct Policies {
  AnySchedule schedule = RoundRobinSchedule{};        ///< Deals stages to devices.
  AnyTransfers transfers = PriorityTransferEngine{};  ///< Cuts and places copies.
  AnyProtocol protocol = LayerEventProtocol{};        ///< Orders the optimizer.
  AnyPartitioner partitioner = Partitioner{};         ///< Cuts the model into stages.
  /// The processes that train together, see `docs/11_several_hosts.md`; it outlives the pipeline.
  AnyProcessGroup group{};

  [[nodiscard]] AnyPlanner planner() const { return {schedule, transfers, protocol, partitioner}; }
};

}  // namespace roundpipe
