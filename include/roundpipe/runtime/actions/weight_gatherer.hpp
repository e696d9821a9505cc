// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The host lane that brings the weights that other ranks have updated.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/runtime/execute/host_lane_work.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>

#include <cstdint>

namespace roundpipe {

/// Completes master copies of which each rank has written its own shard.
class WeightGatherer final : public HostLaneWork {
 public:
  /// \p memory must outlive this. \p copies_parameters: whether P copies are separate actions.
  WeightGatherer(AnyProcessGroup group, ParameterMemory const& memory, bool copies_parameters);

  /// \throws Error as the group does.
  void run(RunState const& run, ActionId id) override;

  /// An operation of all ranks: the master copy of \p block that holds \p version gets the shards
  /// of the other ranks.
  void gather(BlockId block, std::uint64_t version);

 private:
  AnyProcessGroup group_;
  ParameterMemory const& memory_;
  bool copies_parameters_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/actions/impl/weight_gatherer.ipp>
#endif
