// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/hosts/group_checks.hpp>
#include <roundpipe/hosts/loopback_group.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE LoopbackNetwork::LoopbackNetwork(std::size_t ranks, LoopbackOptions options)
    : ranks_(ranks),
      options_(options),
      boxes_(group_channel_count * ranks * ranks),
      uplinks_(ranks),
      downlinks_(ranks),
      operations_(ranks) {
  require(ranks > 0, Errc::invalid_argument, "a loopback has at least one rank");
}

ROUNDPIPE_INLINE LoopbackNetwork::Clock::time_point LoopbackNetwork::arrival(std::size_t from,
                                                                             std::size_t to,
                                                                             Bytes bytes) {
  auto end = Clock::now();
  if (options_.bytes_per_second > 0) {
    std::chrono::duration<double> const time(static_cast<double>(bytes) /
                                             options_.bytes_per_second);
    end = std::max({end, uplinks_[from], downlinks_[to]}) +
          std::chrono::duration_cast<Clock::duration>(time);
    uplinks_[from] = end;
    downlinks_[to] = end;
  }
  return end + options_.latency;
}

ROUNDPIPE_INLINE void LoopbackNetwork::send(GroupChannel channel,
                                            std::size_t from,
                                            std::size_t to,
                                            ConstHostBytes bytes) {
  std::lock_guard const lock(mutex_);
  box(channel, from, to).push_back({{bytes.begin(), bytes.end()}, arrival(from, to, bytes.size())});
  changed_.notify_all();
}

ROUNDPIPE_INLINE void LoopbackNetwork::receive(GroupChannel channel,
                                               std::size_t from,
                                               std::size_t to,
                                               HostBytes bytes) {
  std::unique_lock lock(mutex_);
  auto& box = this->box(channel, from, to);
  changed_.wait(lock, [&] { return !box.empty() || end_.is_set(); });
  end_.rethrow();
  auto const arrival = box.front().arrival;
  changed_.wait_until(lock, arrival, [&] { return end_.is_set() || Clock::now() >= arrival; });
  end_.rethrow();
  auto const message = std::move(box.front().bytes);
  box.pop_front();
  lock.unlock();
  if (message.size() != bytes.size()) {
    auto const text = "rank " + std::to_string(from) + " has sent rank " + std::to_string(to) +
                      " " + std::to_string(message.size()) + " bytes where " +
                      std::to_string(bytes.size()) + " were expected";
    end(to, text);
    throw Error(Errc::invalid_argument, text);
  }
  detail::copy_bytes(message, bytes);
}

ROUNDPIPE_INLINE void LoopbackNetwork::end(std::size_t rank, std::string const& reason) {
  std::lock_guard const lock(mutex_);
  end_.set(rank, reason);
  changed_.notify_all();
}

ROUNDPIPE_INLINE std::uint64_t LoopbackGroup::begin() {
  network_.end_.rethrow();
  auto const operation = network_.operations_[rank_]++;
  auto const& fault = network_.options_.fault;
  if (fault && fault->rank == rank_ && fault->operation == operation) {
    throw Error(Errc::device_fault,
                "operation " + std::to_string(operation) + " of rank " + std::to_string(rank_) +
                    " fails, as the loopback's options want");
  }
  return operation;
}

template <class BytesFor>
void LoopbackGroup::send(GroupChannel channel,
                         std::uint64_t operation,
                         std::vector<std::size_t> receivers,
                         BytesFor const& bytes_for) {
  RandomKey const key{network_.options_.seed,
                      static_cast<std::uint32_t>(operation),
                      static_cast<std::uint32_t>(rank_),
                      static_cast<std::uint32_t>(channel),
                      0};
  auto const longest = network_.options_.longest_delay.count();
  for (std::uint64_t n = 0; !receivers.empty(); ++n) {
    auto const words = random_block(key, n);
    auto const next = receivers.begin() + static_cast<std::ptrdiff_t>(words[0] % receivers.size());
    if (longest > 0) {
      auto const delay = static_cast<std::uint64_t>(words[1]) % static_cast<std::uint64_t>(longest);
      std::this_thread::sleep_for(std::chrono::nanoseconds(delay));
    }
    network_.send(channel, rank_, *next, bytes_for(*next));
    receivers.erase(next);
  }
}

ROUNDPIPE_INLINE std::vector<std::size_t> LoopbackGroup::others() const {
  std::vector<std::size_t> ranks;
  for (std::size_t r = 0; r < size(); ++r) {
    if (r != rank_) {
      ranks.push_back(r);
    }
  }
  return ranks;
}

ROUNDPIPE_INLINE void LoopbackGroup::gather(GroupChannel channel,
                                            ConstHostBytes mine,
                                            HostBytes all) {
  detail::check_gather(size(), mine, all);
  std::vector<HostBytes> theirs;
  for (std::size_t r = 0; r < size(); ++r) {
    theirs.push_back(all.subspan(r * mine.size(), mine.size()));
  }
  exchange(channel, std::vector<ConstHostBytes>(size(), mine), theirs);
}

ROUNDPIPE_INLINE void LoopbackGroup::exchange(GroupChannel channel,
                                              std::span<ConstHostBytes const> mine,
                                              std::span<HostBytes const> theirs) {
  detail::check_exchange(rank_, size(), mine, theirs);
  auto const operation = begin();
  send(channel, operation, others(), [&](std::size_t to) { return mine[to]; });
  detail::copy_bytes(mine[rank_], theirs[rank_]);
  for (auto const from : others()) {
    network_.receive(channel, from, rank_, theirs[from]);
  }
}

ROUNDPIPE_INLINE void LoopbackGroup::broadcast(GroupChannel channel,
                                               std::size_t root,
                                               HostBytes bytes) {
  detail::check_root(size(), root);
  auto const operation = begin();
  if (rank_ == root) {
    send(channel, operation, others(), [&](std::size_t) { return ConstHostBytes(bytes); });
  } else {
    network_.receive(channel, root, rank_, bytes);
  }
}

ROUNDPIPE_INLINE void LoopbackGroup::barrier(GroupChannel channel) {
  gather(channel, {}, {});
}

}  // namespace roundpipe
