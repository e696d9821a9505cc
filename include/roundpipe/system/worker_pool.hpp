// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A few threads that share the elements of an array, always in the same way.

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
#include <span>
#include <thread>
#include <utility>
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
  explicit WorkerPool(std::size_t threads) { start(std::max<std::size_t>(threads, 1)); }

  /// \p threads workers, spread evenly over \p cpus and each pinned to one, except that worker 0,
  /// the caller, goes where it likes. Without CPUs nothing is pinned.
  WorkerPool(std::size_t threads, UsableCpus const& cpus) {
    threads = std::max<std::size_t>(threads, 1);
    for (std::size_t i = 0; i < threads && !cpus.cpus.empty(); ++i) {
      auto const at =
          threads <= cpus.cpus.size() ? i * cpus.cpus.size() / threads : i % cpus.cpus.size();
      cpus_.push_back(cpus.cpus[at]);
      nodes_.push_back(cpus.nodes.empty() ? 0 : cpus.nodes[at]);
    }
    start(threads);
  }

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
                     std::function<void(std::size_t, std::size_t)> const& f) {
    if (workers_.empty() || size <= grain) {
      f(0, size);
      return;
    }
    size_ = size;
    grain_ = grain;
    function_ = &f;
    pending_.store(workers_.size(), std::memory_order_relaxed);
    post();
    run_part(0);
    wait(finished_, [&] { return pending_.load(std::memory_order_acquire) == 0; });
    if (error_) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

  /// Moves the pages of each worker's share of \p memory, an array of elements of \p element_bytes
  /// that \ref for_each_part cuts at \p grain elements, to the NUMA node of the worker's CPU. Pages
  /// that two shares meet in go to the earlier. Does nothing when the pool is not pinned or its
  /// CPUs are of one node, and what the system refuses stays where it is.
  void place_shards(HostBytes memory, std::size_t element_bytes, std::size_t grain) const noexcept {
    if (std::ranges::adjacent_find(nodes_, std::not_equal_to<>{}) == nodes_.end()) {
      return;
    }
    for (std::size_t worker = 0; worker < size(); ++worker) {
      auto const [begin, end] = shard_of(memory.size() / element_bytes, grain, worker, size());
      move_pages(memory.data() + begin * element_bytes,
                 memory.data() + end * element_bytes,
                 nodes_[worker]);
    }
  }

 private:
  /// Moves the pages that begin in [\p begin, \p end).
  static void move_pages([[maybe_unused]] std::byte const* begin,
                         [[maybe_unused]] std::byte const* end,
                         [[maybe_unused]] std::size_t node) noexcept {
#if defined(__linux__) && defined(SYS_mbind)
    constexpr std::size_t word_bits = 8 * sizeof(unsigned long);
    unsigned long nodes[16] = {};
    auto const page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto const up = [&](std::byte const* at) {
      return (reinterpret_cast<std::uintptr_t>(at) + page - 1) / page * page;
    };
    if (up(begin) < up(end) && node < 16 * word_bits) {
      constexpr int preferred = 1;       // MPOL_PREFERRED
      constexpr unsigned move_flag = 2;  // MPOL_MF_MOVE
      nodes[node / word_bits] = 1UL << (node % word_bits);
      (void)syscall(SYS_mbind,
                    up(begin),
                    up(end) - up(begin),
                    preferred,
                    nodes,
                    16 * word_bits + 1,
                    move_flag);
    }
#endif
  }

  void start(std::size_t threads) {
    try {
      for (std::size_t i = 1; i < threads; ++i) {
        workers_.emplace_back([this, i, threads] { work(i, threads); });
      }
    } catch (...) {
      stop();
      throw;
    }
  }

  void stop() {
    stops_ = true;
    post();
    for (auto& worker : workers_) {
      worker.join();
    }
  }

  /// Wakes the workers for what was written before.
  void post() {
    {
      std::lock_guard const lock(mutex_);  // none is between its look at job_ and its sleep
      job_.fetch_add(1, std::memory_order_release);
    }
    posted_.notify_all();
  }

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

  void work(std::size_t index, std::size_t workers) {
    if (index < cpus_.size()) {
      (void)pin_this_thread(std::span(cpus_).subspan(index, 1));
    }
    for (std::uint64_t seen = 0;; ++seen) {
      wait(posted_, [&] { return job_.load(std::memory_order_acquire) != seen; });
      if (stops_) {
        return;
      }
      run_part(index, workers);
      if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        std::lock_guard const lock(mutex_);  // notified under it: the pool may go once it is free
        finished_.notify_all();
      }
    }
  }

  void run_part(std::size_t index) { run_part(index, size()); }
  void run_part(std::size_t index, std::size_t workers) {
    auto const [begin, end] = shard_of(size_, grain_, index, workers);
    try {
      if (begin < end) {
        (*function_)(begin, end);
      }
    } catch (...) {
      std::lock_guard const lock(mutex_);
      error_ = std::current_exception();
    }
  }

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
