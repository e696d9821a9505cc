// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Policies that are chosen at run time, so that one pipeline serves all choices.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/partition/simulated_partitioner.hpp>
#include <roundpipe/partition/uniform_partitioner.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>
#include <roundpipe/schedule/looped_bfs_schedule.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "options.hpp"

namespace train_throughput {

namespace rp = roundpipe;

class ChosenSchedule {
 public:
  explicit ChosenSchedule(Options const& o) {
    if (o.schedule == "looped-bfs") {
      choice_ = rp::LoopedBfsSchedule{};
    }
  }
  [[nodiscard]] rp::DeviceTasks tasks(rp::ScheduleShape const& shape) const {
    return std::visit([&](auto const& s) { return s.tasks(shape); }, choice_);
  }
  [[nodiscard]] std::size_t advance(rp::ScheduleShape const& shape) const {
    return std::visit([&](auto const& s) -> std::size_t { return s.advance(shape); }, choice_);
  }

 private:
  std::variant<rp::RoundRobinSchedule, rp::LoopedBfsSchedule> choice_;
};
static_assert(rp::Schedule<ChosenSchedule>);

class ChosenTransfers {
 public:
  explicit ChosenTransfers(Options const& o) {
    if (o.transfers == "unplanned") {
      choice_ = rp::UnplannedTransfers{};
    }
  }
  [[nodiscard]] std::vector<rp::Chunk> chunks(std::span<Bytes const> tensors,
                                              std::size_t windows) const {
    return std::visit([&](auto const& t) { return t.chunks(tensors, windows); }, choice_);
  }
  [[nodiscard]] std::size_t activations_in_flight() const {
    return std::visit([](auto const& t) { return t.activations_in_flight(); }, choice_);
  }

 private:
  std::variant<rp::PriorityTransferEngine, rp::UnplannedTransfers> choice_;
};
static_assert(rp::TransferPolicy<ChosenTransfers>);

class ChosenProtocol {
 public:
  explicit ChosenProtocol(Options const& o) : choice_(rp::LayerEventProtocol{o.sync ? 0 : 1}) {
    if (o.protocol == "blocking") {
      choice_ = rp::BlockingProtocol{o.sync ? 0 : 1};
    }
  }
  [[nodiscard]] int staleness() const {
    return std::visit([](auto const& p) { return p.staleness(); }, choice_);
  }
  [[nodiscard]] std::size_t master_copies() const {
    return std::visit([](auto const& p) { return p.master_copies(); }, choice_);
  }
  [[nodiscard]] std::size_t gradient_buffers() const {
    return std::visit([](auto const& p) { return p.gradient_buffers(); }, choice_);
  }
  [[nodiscard]] std::vector<rp::BlockEvent> before(rp::BlockEvent event, std::size_t blocks) const {
    return std::visit([&](auto const& p) { return p.before(event, blocks); }, choice_);
  }

 private:
  std::variant<rp::LayerEventProtocol, rp::BlockingProtocol> choice_;
};
static_assert(rp::EventProtocol<ChosenProtocol>);

class ChosenPartitioner {
 public:
  explicit ChosenPartitioner(Options const& o) {
    if (o.partition == "uniform") {
      choice_ = rp::UniformPartitioner{};
    } else if (o.partition == "bound") {
      choice_ = rp::Partitioner{};
    }
  }
  [[nodiscard]] rp::Partition partition(rp::PartitionProblem const& problem) const {
    return std::visit([&](auto const& p) { return p.partition(problem); }, choice_);
  }

 private:
  std::variant<rp::SimulatedPartitioner, rp::Partitioner, rp::UniformPartitioner> choice_;
};
static_assert(rp::PartitionPolicy<ChosenPartitioner>);

}  // namespace train_throughput
