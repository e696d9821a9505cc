// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A few threads that share the elements of an array, always in the same way.

#include <roundpipe/config.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/system/cpu_set.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#ifdef __linux__
#  include <sys/syscall.h>
#  include <unistd.h>
#endif

namespace roundpipe {

/// Elements [begin, end) of an array.
struct Shard {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// The share of worker \p worker of \p workers in \p size elements: consecutive, cut at multiples
/// of \p grain, whose numbers differ by at most one between workers. Earlier workers get more.
[[nodiscard]] constexpr Shard shard_of(std::size_t size,
                                       std::size_t grain,
                                       std::size_t worker,
                                       std::size_t workers) noexcept {
  auto const grains = size / grain + (size % grain != 0 ? 1 : 0);
  auto const begin_of = [&](std::size_t i) {
    return std::min(size, (i * (grains / workers) + std::min(i, grains % workers)) * grain);
  };
  return {begin_of(worker), begin_of(worker + 1)};
}

/// \brief Runs a function over parts of a range on several threads, the caller's among them.
///
/// Worker i always gets the same share of an array of the same size, so that what it touched first,
/// or what \ref place_shards moved to it, stays close to it. Worker 0 is the caller.
class WorkerPool {
 public:
  /// \p threads counts the caller's; 0 stands for 1. Nothing is pinned.
  /// \throws Error as \ref start_thread does.
  explicit WorkerPool(std::size_t threads) { start(std::max<std::size_t>(threads, 1)); }

  /// \p threads workers, spread evenly over \p cpus and each pinned to one, except that worker 0,
  /// the caller, goes where it likes. Without CPUs nothing is pinned.
  /// \throws Error as \ref start_thread does.
  WorkerPool(std::size_t threads, UsableCpus const& cpus);

  WorkerPool(WorkerPool const&) = delete;
  WorkerPool& operator=(WorkerPool const&) = delete;
  ~WorkerPool() { stop(); }

  /// How many workers there are, the caller among them.
  [[nodiscard]] std::size_t size() const noexcept { return workers_.size() + 1; }

  /// Calls `f(begin, end)` for parts that cover [0, \p size) once, each worker's \ref shard_of it,
  /// and returns when all are done. A \p grain whose elements fill cache lines keeps workers off
  /// each other's. For one caller at a time. Rethrows what \p f throws.
  void for_each_part(std::size_t size,
                     std::size_t grain,
                     std::function<void(std::size_t, std::size_t)> const& f);

  /// Moves the pages of each worker's share of \p memory, an array of elements of \p element_bytes
  /// that \ref for_each_part cuts at \p grain elements, to the NUMA node of the worker's CPU. Pages
  /// that two shares meet in go to the earlier. Does nothing when the pool is not pinned or its
  /// CPUs are of one node, and what the system refuses stays where it is.
  void place_shards(HostBytes memory, std::size_t element_bytes, std::size_t grain) const noexcept;

 private:
  /// Moves the pages that begin in [\p begin, \p end).
  static void move_pages([[maybe_unused]] std::byte const* begin,
                         [[maybe_unused]] std::byte const* end,
                         [[maybe_unused]] std::size_t node) noexcept;

  void start(std::size_t threads);

  void stop();

  /// Wakes the workers for what was written before.
  void post();

  /// Waits until \p ready(): briefly awake, as jobs often follow each other at once, then asleep.
  template <class F>
  void wait(std::condition_variable& changed, F const& ready) {
    for (int i = 0; i < 500; ++i) {
      if (ready()) {
        return;
      }
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    std::unique_lock lock(mutex_);
    changed.wait(lock, ready);
  }

  void work(std::size_t index, std::size_t workers);

  void run_part(std::size_t index) { run_part(index, size()); }
  void run_part(std::size_t index, std::size_t workers);

  std::vector<std::size_t> cpus_;   // of each worker; none when nothing is pinned
  std::vector<std::size_t> nodes_;  // theirs
  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable finished_;
  std::atomic<std::uint64_t> job_ = 0;
  std::atomic<std::size_t> pending_ = 0;
  // Written before job_ grows, read after.
  std::function<void(std::size_t, std::size_t)> const* function_ = nullptr;
  std::size_t size_ = 0;
  std::size_t grain_ = 1;
  bool stops_ = false;
  std::exception_ptr error_;
  std::vector<std::thread> workers_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/worker_pool.ipp>
#endif
