// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/gather_parts.hpp>
#include <roundpipe/runtime/actions/weight_gatherer.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE WeightGatherer::WeightGatherer(AnyProcessGroup group,
                                                ParameterMemory const& memory,
                                                bool copies_parameters)
    : HostLaneWork({LaneKind::gather}),
      group_(std::move(group)),
      memory_(memory),
      copies_parameters_(copies_parameters) {}

ROUNDPIPE_INLINE void WeightGatherer::run(RunState const& run, ActionId id) {
  auto const iteration = run.call().iteration;
  gather(run.program()[id].block, copies_parameters_ ? iteration - 1 : iteration);
}

ROUNDPIPE_INLINE void WeightGatherer::gather(BlockId block, std::uint64_t version) {
  auto const& described = memory_.blocks().blocks[block.index()];
  auto const master = memory_.master(block, version);
  std::vector<HostBytes> parts;
  for (auto const& shard : described.shards) {
    auto const [begin, end] = shard.bytes(described.master);
    parts.push_back(master.subspan(begin, end - begin));
  }
  gather_parts(group_, GroupChannel::weights, parts);
}

}  // namespace roundpipe
