// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A wire between ranks that are threads, whose pieces take their ways in random order.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/nccl/staged_exchange.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// What is between the ranks: messages by sender and receiver, in order.
class FakeCable {
 public:
  void put(std::size_t from, std::size_t to, std::vector<std::byte> bytes) {
    std::lock_guard const lock(mutex_);
    messages_[{from, to}].push_back(std::move(bytes));
  }
  /// The next message, if it is there.
  [[nodiscard]] std::optional<std::vector<std::byte>> take(std::size_t from, std::size_t to) {
    std::lock_guard const lock(mutex_);
    auto& waiting = messages_[{from, to}];
    if (waiting.empty()) {
      return std::nullopt;
    }
    auto message = std::move(waiting.front());
    waiting.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::size_t, std::size_t>, std::deque<std::vector<std::byte>>> messages_;
};

/// Slots of memory as those of a GPU: three lanes, each in order, work when somebody looks.
class FakeStaging {
 public:
  FakeStaging(FakeCable& cable,
              std::size_t rank,
              std::size_t ranks,
              std::size_t slots,
              std::size_t piece_bytes)
      : cable_(cable),
        rank_(rank),
        sent_(slots, Slot(ranks, std::vector<std::byte>(piece_bytes))),
        received_(sent_),
        ends_(slots) {}

  [[nodiscard]] std::size_t slot_count() const { return sent_.size(); }

  void start(std::size_t slot, std::span<nccl::Transfer const> given) {
    std::vector<nccl::Transfer> const pieces(given.begin(), given.end());
    lanes_[0].push_back([=, this] {  // up
      for (std::size_t k = 0; k < pieces.size(); ++k) {
        std::copy(pieces[k].sent.begin(), pieces[k].sent.end(), sent_[slot][k].begin());
      }
      return true;
    });
    lanes_[1].push_back([=, this, told = false, next = std::size_t{0}]() mutable {  // over
      for (std::size_t k = 0; !told && k < pieces.size(); ++k) {
        auto const begin = sent_[slot][k].begin();
        auto const bytes = static_cast<std::ptrdiff_t>(pieces[k].sent.size());
        if (bytes > 0) {
          cable_.put(rank_, pieces[k].rank, {begin, begin + bytes});
        }
      }
      told = true;
      for (; next < pieces.size(); ++next) {
        if (pieces[next].received.empty()) {
          continue;
        }
        auto const message = cable_.take(pieces[next].rank, rank_);
        if (!message) {
          return false;
        }
        require(message->size() == pieces[next].received.size(),
                Errc::device_fault,
                "two ranks cut a message differently");
        std::copy(message->begin(), message->end(), received_[slot][next].begin());
      }
      return true;
    });
    lanes_[2].push_back([=, this] {  // down
      for (std::size_t k = 0; k < pieces.size(); ++k) {
        std::copy_n(
            received_[slot][k].begin(), pieces[k].received.size(), pieces[k].received.begin());
      }
      return true;
    });
    ends_[slot] = ++started_;
  }

  [[nodiscard]] bool is_done(std::size_t slot) {
    auto const lane = random_word(RandomKey{rank_, 0, 0, 0, 0}, looks_++) % lanes_.size();
    // A lane's next work waits for the same step's work on the lane before.
    if (!lanes_[lane].empty() && (lane == 0 || done_[lane] < done_[lane - 1]) &&
        lanes_[lane].front()()) {
      lanes_[lane].pop_front();
      ++done_[lane];
    }
    return done_[2] >= ends_[slot];
  }

  void finish(std::size_t /*slot*/, std::span<nccl::Transfer const> /*pieces*/) { ++finished; }

  std::size_t finished = 0;  ///< Steps.

 private:
  using Slot = std::vector<std::vector<std::byte>>;

  FakeCable& cable_;
  std::size_t rank_;
  std::vector<Slot> sent_;
  std::vector<Slot> received_;
  std::array<std::deque<std::function<bool()>>, 3> lanes_;
  std::array<std::size_t, 3> done_{};  // of each lane
  std::vector<std::size_t> ends_;      // by slot: the step, from 1, that has it
  std::size_t started_ = 0;
  std::uint64_t looks_ = 0;
};

/// A wire of a \ref nccl::WiredGroup. It refuses what NCCL would not survive.
class FakeWire {
 public:
  FakeWire(FakeCable& cable, std::size_t rank, std::size_t ranks, std::size_t piece_bytes)
      : staging_(cable, rank, ranks, 3, piece_bytes), piece_bytes_(piece_bytes) {}

  template <class Stop>
  void exchange(std::span<nccl::Transfer const> transfers, Stop&& stop) {
    require(!busy_.exchange(true), Errc::device_fault, "two exchanges are on a wire at once");
    auto const number = exchanges++;
    nccl::run_staged(staging_, transfers, piece_bytes_, [&] {
      stop();
      require(number != fails_at, Errc::device_fault, "a cable breaks");
      std::this_thread::yield();
    });
    busy_ = false;
  }
  void abort() { ++aborts; }

  std::size_t exchanges = 0;
  std::size_t aborts = 0;
  std::size_t fails_at = 1000;  ///< The number of an exchange.

 private:
  FakeStaging staging_;
  std::size_t piece_bytes_;
  std::atomic<bool> busy_{false};
};

}  // namespace roundpipe::test
