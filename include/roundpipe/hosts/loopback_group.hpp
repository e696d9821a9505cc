// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A group whose ranks are threads of one process, for tests: with delays and faults.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/group_end.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// An operation that fails.
struct LoopbackFault {
  std::size_t rank = 0;
  std::uint64_t operation = 0;  ///< Of all operations of that rank, from 0.
};

/// What the network of a loopback does to its messages.
struct LoopbackOptions {
  std::uint64_t seed = 0;  ///< Of delays, and of the order in which a rank sends its messages.
  /// Each message is sent up to so much later.
  std::chrono::nanoseconds longest_delay{0};
  /// Of the link by which a rank sends, and of that by which it receives; 0: they take no time. A
  /// message has both to itself, one after the other in the order of sending.
  double bytes_per_second = 0;
  std::chrono::nanoseconds latency{0};  ///< Of each message, besides.
  std::optional<LoopbackFault> fault{};
};

class LoopbackGroup;

/// The network between the ranks of a loopback. Make one, and a \ref LoopbackGroup for each rank.
/// A rank sends the messages of an operation in random order, so operations of different channels
/// and ranks overtake each other; those of one channel from one rank to another never do.
class LoopbackNetwork {
 public:
  /// \throws Error (invalid_argument) for no ranks.
  explicit LoopbackNetwork(std::size_t ranks, LoopbackOptions options = {});

  LoopbackNetwork(LoopbackNetwork const&) = delete;
  LoopbackNetwork& operator=(LoopbackNetwork const&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return ranks_; }

 private:
  friend class LoopbackGroup;

  using Clock = std::chrono::steady_clock;

  struct Message {
    std::vector<std::byte> bytes;
    Clock::time_point arrival;
  };

  [[nodiscard]] std::deque<Message>& box(GroupChannel channel, std::size_t from, std::size_t to) {
    return boxes_[(static_cast<std::size_t>(channel) * ranks_ + from) * ranks_ + to];
  }
  void send(GroupChannel channel, std::size_t from, std::size_t to, ConstHostBytes bytes);
  /// When \p bytes that rank \p from sends now are at rank \p to; their links are busy meanwhile.
  [[nodiscard]] Clock::time_point arrival(std::size_t from, std::size_t to, Bytes bytes);
  /// Blocks until the message is there. \throws Error (aborted) when the group ends,
  /// (invalid_argument) for a message of another size, which ends the group.
  void receive(GroupChannel channel, std::size_t from, std::size_t to, HostBytes bytes);
  void end(std::size_t rank, std::string const& reason);

  std::size_t ranks_;
  LoopbackOptions options_;
  GroupEnd end_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<Message>> boxes_;              // by channel, sender, receiver
  std::vector<Clock::time_point> uplinks_;              // by rank: until when the link is busy
  std::vector<Clock::time_point> downlinks_;            // likewise
  std::vector<std::atomic<std::uint64_t>> operations_;  // by rank
};

/// One rank of a \ref LoopbackNetwork.
class LoopbackGroup {
 public:
  /// \p network must outlive the group.
  /// \throws Error (invalid_argument) when the network has no such rank.
  LoopbackGroup(LoopbackNetwork& network, std::size_t rank) : network_(network), rank_(rank) {
    require(rank < network.size(), Errc::invalid_argument, "a loopback has no such rank");
  }

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return network_.size(); }

  void gather(GroupChannel channel, ConstHostBytes mine, HostBytes all);
  void exchange(GroupChannel channel,
                std::span<ConstHostBytes const> mine,
                std::span<HostBytes const> theirs);
  void broadcast(GroupChannel channel, std::size_t root, HostBytes bytes);
  void barrier(GroupChannel channel);
  void abort(std::string const& reason) { network_.end(rank_, reason); }
  void rethrow() const { network_.end_.rethrow(); }

 private:
  /// Begins an operation. \returns its number.
  /// \throws Error (device_fault) where the options want a fault, (aborted) when the group has
  ///         ended.
  std::uint64_t begin();
  /// Sends `bytes_for(r)` to each of \p receivers, in an order that \p operation draws.
  template <class BytesFor>
  void send(GroupChannel channel,
            std::uint64_t operation,
            std::vector<std::size_t> receivers,
            BytesFor const& bytes_for);
  /// The other ranks.
  [[nodiscard]] std::vector<std::size_t> others() const;

  LoopbackNetwork& network_;
  std::size_t rank_;
};

static_assert(ProcessGroup<LoopbackGroup>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/hosts/impl/loopback_group.ipp>
#endif
