// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A policy of any type: \ref AnySchedule, \ref AnyTransfers, \ref AnyProtocol, \ref
/// AnyPartitioner.
///
/// Each models the concept of what it is made of, and does what that policy does. Its type does not
/// depend on the policy, so a program may choose when it runs:
///
///     AnySchedule schedule = RoundRobinSchedule{};
///     if (loops) schedule = LoopedBfsSchedule{};
/// Conversions are implicit, so that a policy is enough where any is asked for. Copies share one
/// policy, which nobody changes. Policies are asked when graphs are made, never while one runs.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/requirements.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/bytes.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

/// Any \ref Schedule.
class AnySchedule {
 public:
  template <class S>
    requires(!std::same_as<S, AnySchedule>)
  AnySchedule(S schedule) {
    static_assert(detail::check_schedule<S>());
    auto const kept = std::make_shared<S const>(std::move(schedule));
    tasks_ = [kept](ScheduleShape const& shape) { return kept->tasks(shape); };
    advance_ = [kept](ScheduleShape const& shape) { return kept->advance(shape); };
    fuses_ = roundpipe::fuses(*kept);
  }

  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const { return tasks_(shape); }
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const { return advance_(shape); }
  [[nodiscard]] bool fuses() const noexcept { return fuses_; }

 private:
  std::function<DeviceTasks(ScheduleShape const&)> tasks_;
  std::function<std::size_t(ScheduleShape const&)> advance_;
  bool fuses_ = true;
};

/// Any \ref TransferPolicy.
class AnyTransfers {
 public:
  template <class T>
    requires(!std::same_as<T, AnyTransfers>)
  AnyTransfers(T transfers) {
    static_assert(detail::check_transfers<T>());
    auto const kept = std::make_shared<T const>(std::move(transfers));
    chunks_ = [kept](std::span<Bytes const> tensors, std::size_t windows) {
      return kept->chunks(tensors, windows);
    };
    in_flight_ = kept->activations_in_flight();
  }

  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors,
                                          std::size_t windows) const {
    return chunks_(tensors, windows);
  }
  [[nodiscard]] std::size_t activations_in_flight() const noexcept { return in_flight_; }

 private:
  std::function<std::vector<Chunk>(std::span<Bytes const>, std::size_t)> chunks_;
  std::size_t in_flight_ = 0;
};

/// Any \ref EventProtocol.
class AnyProtocol {
 public:
  template <class E>
    requires(!std::same_as<E, AnyProtocol>)
  AnyProtocol(E protocol) {
    static_assert(detail::check_protocol<E>());
    auto const kept = std::make_shared<E const>(std::move(protocol));
    before_ = [kept](BlockEvent action, std::size_t blocks) {
      return kept->before(action, blocks);
    };
    staleness_ = kept->staleness();
    master_copies_ = kept->master_copies();
    gradient_buffers_ = kept->gradient_buffers();
  }

  [[nodiscard]] std::vector<BlockEvent> before(BlockEvent action, std::size_t blocks) const {
    return before_(action, blocks);
  }
  [[nodiscard]] int staleness() const noexcept { return staleness_; }
  [[nodiscard]] std::size_t master_copies() const noexcept { return master_copies_; }
  [[nodiscard]] std::size_t gradient_buffers() const noexcept { return gradient_buffers_; }

 private:
  std::function<std::vector<BlockEvent>(BlockEvent, std::size_t)> before_;
  int staleness_ = 0;
  std::size_t master_copies_ = 1;
  std::size_t gradient_buffers_ = 1;
};

/// Any \ref PartitionPolicy.
class AnyPartitioner {
 public:
  template <class P>
    requires(!std::same_as<P, AnyPartitioner>)
  AnyPartitioner(P partitioner) {
    static_assert(detail::check_partitioner<P>());
    auto const kept = std::make_shared<P const>(std::move(partitioner));
    partition_ = [kept](PartitionProblem const& problem) { return kept->partition(problem); };
    yields_to_forecast_ = roundpipe::yields_to_forecast(*kept);
  }

  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    return partition_(problem);
  }
  [[nodiscard]] bool yields_to_forecast() const noexcept { return yields_to_forecast_; }

 private:
  std::function<Partition(PartitionProblem const&)> partition_;
  bool yields_to_forecast_ = false;
};

static_assert(Schedule<AnySchedule>);
static_assert(TransferPolicy<AnyTransfers>);
static_assert(EventProtocol<AnyProtocol>);
static_assert(PartitionPolicy<AnyPartitioner>);

}  // namespace roundpipe
