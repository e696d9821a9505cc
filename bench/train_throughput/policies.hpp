// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Policies that are chosen at run time, so that one pipeline serves all choices.

#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>
#include <roundpipe/partition/uniform_partitioner.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/one_of.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>
#include <roundpipe/schedule/looped_bfs_schedule.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <train_throughput/options.hpp>

namespace train_throughput {

namespace rp = roundpipe;

using AnySchedule = rp::OneOf<rp::RoundRobinSchedule, rp::LoopedBfsSchedule>;
using AnyTransfers = rp::OneOf<rp::PriorityTransferEngine, rp::UnplannedTransfers>;
using AnyProtocol = rp::OneOf<rp::LayerEventProtocol, rp::BlockingProtocol>;
using AnyPartitioner = rp::OneOf<rp::SimulatedPartitioner, rp::Partitioner, rp::UniformPartitioner>;

inline AnySchedule schedule_of(Options const& o) {
  return o.schedule == "looped-bfs" ? AnySchedule(rp::LoopedBfsSchedule{}) : AnySchedule{};
}

inline AnyTransfers transfers_of(Options const& o) {
  return o.transfers == "unplanned" ? AnyTransfers(rp::UnplannedTransfers{}) : AnyTransfers{};
}

inline AnyProtocol protocol_of(Options const& o) {
  auto const staleness = o.sync ? 0 : 1;
  return o.protocol == "blocking" ? AnyProtocol(rp::BlockingProtocol{staleness})
                                  : AnyProtocol(rp::LayerEventProtocol{staleness});
}

inline AnyPartitioner partitioner_of(Options const& o) {
  return o.partition == "uniform" ? AnyPartitioner(rp::UniformPartitioner{})
         : o.partition == "bound" ? AnyPartitioner(rp::Partitioner{})
                                  : AnyPartitioner{};
}

}  // namespace train_throughput
