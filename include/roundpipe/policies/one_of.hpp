// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A policy that the program chooses when it runs.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/bytes.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace roundpipe {

/// \brief One of several policies of one kind; which one, the program decides when it runs.
///
/// It models the concept that all \p Policies model (\ref Schedule, \ref TransferPolicy,
/// \ref EventProtocol or \ref PartitionPolicy), and does what the chosen policy does. Its type does
/// not depend on the choice, so one `Pipeline` type serves all:
///
///     using AnySchedule = OneOf<RoundRobinSchedule, LoopedBfsSchedule>;
///     AnySchedule const schedule = loops ? AnySchedule(LoopedBfsSchedule{}) : AnySchedule{};
template <std::copy_constructible... Policies>
class OneOf {
 public:
  /// Chooses the first policy, made without arguments.
  OneOf()
    requires std::default_initializable<std::variant<Policies...>>
  = default;

  /// Chooses \p policy.
  template <class P>
    requires(std::same_as<P, Policies> || ...)
  explicit OneOf(P policy) : choice_(std::in_place_type<P>, std::move(policy)) {}

  /// What \p f returns for the chosen policy; the same type for each of them.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), choice_);
  }

  /// As \ref Schedule says.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const
    requires(Schedule<Policies> && ...)
  {
    return visit([&](auto const& policy) { return policy.tasks(shape); });
  }
  /// As \ref Schedule says.
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const
    requires(Schedule<Policies> && ...)
  {
    return visit([&](auto const& policy) -> std::size_t { return policy.advance(shape); });
  }
  /// As \ref roundpipe::fuses says of the chosen schedule.
  [[nodiscard]] bool fuses() const
    requires(Schedule<Policies> && ...)
  {
    return visit([](auto const& policy) { return roundpipe::fuses(policy); });
  }

  /// As \ref TransferPolicy says.
  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors, std::size_t windows) const
    requires(TransferPolicy<Policies> && ...)
  {
    return visit([&](auto const& policy) { return policy.chunks(tensors, windows); });
  }
  /// As \ref TransferPolicy says.
  [[nodiscard]] std::size_t activations_in_flight() const
    requires(TransferPolicy<Policies> && ...)
  {
    return visit([](auto const& policy) -> std::size_t { return policy.activations_in_flight(); });
  }

  /// As \ref EventProtocol says.
  [[nodiscard]] std::vector<BlockEvent> before(BlockEvent action, std::size_t blocks) const
    requires(EventProtocol<Policies> && ...)
  {
    return visit([&](auto const& policy) { return policy.before(action, blocks); });
  }
  /// As \ref EventProtocol says.
  [[nodiscard]] int staleness() const
    requires(EventProtocol<Policies> && ...)
  {
    return visit([](auto const& policy) -> int { return policy.staleness(); });
  }
  /// As \ref EventProtocol says.
  [[nodiscard]] std::size_t master_copies() const
    requires(EventProtocol<Policies> && ...)
  {
    return visit([](auto const& policy) -> std::size_t { return policy.master_copies(); });
  }
  /// As \ref EventProtocol says.
  [[nodiscard]] std::size_t gradient_buffers() const
    requires(EventProtocol<Policies> && ...)
  {
    return visit([](auto const& policy) -> std::size_t { return policy.gradient_buffers(); });
  }

  /// As \ref PartitionPolicy says.
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const
    requires(PartitionPolicy<Policies> && ...)
  {
    return visit([&](auto const& policy) { return policy.partition(problem); });
  }
  /// As \ref roundpipe::yields_to_forecast says of the chosen policy.
  [[nodiscard]] bool yields_to_forecast() const
    requires(PartitionPolicy<Policies> && ...)
  {
    return visit([](auto const& policy) { return roundpipe::yields_to_forecast(policy); });
  }

 private:
  std::variant<Policies...> choice_;
};

}  // namespace roundpipe
