// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Makes numbered items ahead of their use, on threads of its own.

#include <roundpipe/core/error.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe {

struct PrefetchOptions {
  std::size_t depth = 4;    ///< How many items are made ahead, at least 1.
  std::size_t threads = 1;  ///< At least 1; each makes whole items.
};

/// \brief A bounded queue of items that threads fill, and one caller takes in the order of their
/// numbers.
///
/// Number n is made by `fill(n, item)`. Items are used again, so that \p fill keeps their memory.
/// Whatever the number of threads, the caller gets the same items, and the first error at the
/// number at which it happened: items before it are good.
template <class Item>
class Prefetch {
 public:
  using Fill = std::function<void(std::uint64_t number, Item& item)>;

  /// Starts with number \p first. \p fill runs on several threads at once if there are several.
  /// \throws Error (invalid_argument) for a depth or a number of threads of 0.
  Prefetch(Fill fill, std::uint64_t first, PrefetchOptions const& options)
      : fill_(std::move(fill)),
        depth_(options.depth),
        next_(first),
        ticket_(first),
        slots_(options.depth + 1) {
    require(options.depth > 0 && options.threads > 0,
            Errc::invalid_argument,
            "a prefetch has a depth and a number of threads of at least 1");
    try {
      for (std::size_t i = 0; i < options.threads; ++i) {
        threads_.emplace_back([this] { work(); });
      }
    } catch (...) {
      stop();
      throw;
    }
  }
  Prefetch(Prefetch const&) = delete;
  Prefetch& operator=(Prefetch const&) = delete;
  /// Drops what nobody has taken. Waits for the items that are being made.
  ~Prefetch() { stop(); }

  /// The next item. It stays as it is until the next call. Waits while it is being made.
  /// \throws What `fill` threw for it, again with every further call.
  [[nodiscard]] Item const& next() {
    std::unique_lock lock(mutex_);
    auto& slot = slot_of(next_);
    if (!slot.ready) {
      ++stalls_;
      ready_.wait(lock, [&] { return slot.ready; });
    }
    if (slot.error) {
      std::rethrow_exception(slot.error);
    }
    slot.ready = false;  // the caller has it now
    ++next_;
    lock.unlock();
    free_.notify_all();
    return slot.item;
  }

  /// The number of the item that comes next.
  [[nodiscard]] std::uint64_t number() const noexcept { return next_; }
  /// How often \ref next had to wait. Any thread may ask.
  [[nodiscard]] std::uint64_t stalls() const noexcept { return stalls_; }

 private:
  struct Slot {
    Item item{};
    bool ready = false;
    std::exception_ptr error;
  };

  [[nodiscard]] Slot& slot_of(std::uint64_t number) noexcept {
    return slots_[static_cast<std::size_t>(number % slots_.size())];
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      auto const number = ticket_++;
      // The item that the caller has, number next_ - 1, keeps its slot.
      free_.wait(lock, [&] { return stops_ || number < next_ + depth_; });
      if (stops_) {
        return;
      }
      auto& slot = slot_of(number);
      lock.unlock();
      std::exception_ptr error;
      try {
        fill_(number, slot.item);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      slot.error = error;
      slot.ready = true;
      ready_.notify_one();
    }
  }

  void stop() noexcept {
    {
      std::lock_guard const lock(mutex_);
      stops_ = true;
    }
    free_.notify_all();
    for (auto& thread : threads_) {
      thread.join();
    }
  }

  Fill fill_;
  std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable ready_;  // an item was made
  std::condition_variable free_;   // a slot is free
  // Written under the mutex; next_ by the caller alone, who may read it without.
  std::uint64_t next_;
  std::uint64_t ticket_;
  std::atomic<std::uint64_t> stalls_ = 0;
  bool stops_ = false;
  std::vector<Slot> slots_;
  std::vector<std::thread> threads_;
};

}  // namespace roundpipe
