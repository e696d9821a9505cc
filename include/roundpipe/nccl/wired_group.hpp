// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A group whose large messages take another way than the rest.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/group_checks.hpp>
#include <roundpipe/nccl/staged_exchange.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe::nccl {

/// \brief The ranks of another group, with a wire for the large messages of exchanges.
///
/// Everything else, and the end of the group, is the other group's. The wire does one exchange at a
/// time, and all ranks do these in one order, whatever order their threads call in: rank 0 gives
/// numbers to exchanges once every rank has called them. So no exchange on the wire waits for a
/// rank that computes, and no two of different channels wait for each other crosswise.
///
/// \tparam Wire Has `exchange(transfers, stop)`, which calls `stop` every now and then while it
///         waits, and throws what that throws; and `abort()`, which ends the wire for good: when it
///         returns, nothing reads or writes the memory of an exchange that has failed. One thread
///         at a time calls them.
template <class Wire>
class WiredGroup {
 public:
  /// \p group is the other group, on all ranks; what it refers to and \p wire must outlive this.
  /// \p smallest: the bytes from which a message takes the wire; the same on all ranks.
  WiredGroup(AnyProcessGroup group, Wire& wire, std::size_t smallest)
      : group_(std::move(group)),
        wire_(wire),
        rank_(group_.rank()),
        size_(group_.size()),
        smallest_(smallest) {}

  WiredGroup(WiredGroup const&) = delete;
  WiredGroup& operator=(WiredGroup const&) = delete;

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void gather(GroupChannel channel, ConstHostBytes mine, HostBytes all) {
    group_.gather(channel, mine, all);
  }
  void exchange(GroupChannel channel,
                std::span<ConstHostBytes const> mine,
                std::span<HostBytes const> theirs) {
    detail::check_exchange(rank_, size_, mine, theirs);
    std::vector<ConstHostBytes> sent(mine.begin(), mine.end());
    std::vector<HostBytes> received(theirs.begin(), theirs.end());
    auto const large = take_large(sent, received);
    auto const number = number_of(channel, sent, received);
    if (!large.empty()) {
      wait_for_turn(number);
      run(large);
    }
    finish(number);
  }
  void broadcast(GroupChannel channel, std::size_t root, HostBytes bytes) {
    group_.broadcast(channel, root, bytes);
  }
  void barrier(GroupChannel channel) { group_.barrier(channel); }
  void abort(std::string const& reason) { group_.abort(reason); }
  void rethrow() const { group_.rethrow(); }

  [[nodiscard]] std::size_t smallest() const noexcept { return smallest_; }
  /// No exchange may be under way; the same on all ranks.
  void set_smallest(std::size_t bytes) noexcept { smallest_ = bytes; }

 private:
  /// Takes the messages that go over the wire from both lists. Both ranks of a message know its
  /// size, so they agree.
  [[nodiscard]] std::vector<Transfer> take_large(std::span<ConstHostBytes> sent,
                                                 std::span<HostBytes> received) const {
    auto const is_large = [&](auto const& bytes) {
      return !bytes.empty() && bytes.size() >= smallest_;
    };
    std::vector<Transfer> large;
    for (std::size_t r = 0; r < size_; ++r) {
      Transfer transfer{r, {}, {}};
      if (r != rank_ && is_large(sent[r])) {
        transfer.sent = std::exchange(sent[r], {});
      }
      if (r != rank_ && is_large(received[r])) {
        transfer.received = std::exchange(received[r], {});
      }
      if (!transfer.sent.empty() || !transfer.received.empty()) {
        large.push_back(transfer);
      }
    }
    return large;
  }

  /// Exchanges what does not go over the wire. \returns the number of this exchange among those of
  /// all channels. Rank 0 gives it once it has a byte, at least, of every rank.
  [[nodiscard]] std::uint64_t number_of(GroupChannel channel,
                                        std::span<ConstHostBytes> sent,
                                        std::span<HostBytes> received) {
    std::byte const here{};
    std::vector<std::byte> there(size_);
    if (rank_ != 0 && sent[0].empty()) {
      sent[0] = {&here, 1};
    }
    for (std::size_t r = 1; rank_ == 0 && r < size_; ++r) {
      if (received[r].empty()) {
        received[r] = HostBytes(there).subspan(r, 1);
      }
    }
    group_.exchange(channel, sent, received);
    std::uint64_t number = rank_ == 0 ? numbers_++ : 0;
    group_.broadcast(channel, 0, std::as_writable_bytes(std::span(&number, 1)));
    return number;
  }

  void wait_for_turn(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    while (
        !finished_.wait_for(lock, std::chrono::milliseconds(1), [&] { return turn_ == number; })) {
      group_.rethrow();
    }
  }

  /// Lets the exchange behind \p number, and behind those that have finished before their turn,
  /// have theirs.
  void finish(std::uint64_t number) {
    {
      std::lock_guard const lock(mutex_);
      early_.insert(number);
      while (early_.erase(turn_) > 0) {
        ++turn_;
      }
    }
    finished_.notify_all();
  }

  void run(std::span<Transfer const> transfers) {
    try {
      wire_.exchange(transfers, [this] { group_.rethrow(); });
    } catch (...) {
      auto const cause = current_error("").message();
      wire_.abort();
      // An error of the wire may be the echo of another rank's end, whose notice takes a while.
      auto const end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      while (std::chrono::steady_clock::now() < end) {
        group_.rethrow();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      group_.abort(cause);
      throw;
    }
  }

  AnyProcessGroup group_;
  Wire& wire_;
  std::size_t rank_;
  std::size_t size_;
  std::size_t smallest_;
  std::atomic<std::uint64_t> numbers_{0};  // that rank 0 has given
  std::mutex mutex_;                       // for all below
  std::condition_variable finished_;
  std::uint64_t turn_ = 0;         // the exchange that may use the wire
  std::set<std::uint64_t> early_;  // that have finished before their turn: they use no wire
};

}  // namespace roundpipe::nccl
