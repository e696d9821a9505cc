// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/span.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/start_thread.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE WorkerPool::WorkerPool(std::size_t threads, UsableCpus const& cpus) {
  threads = std::max<std::size_t>(threads, 1);
  for (std::size_t i = 0; i < threads && !cpus.cpus.empty(); ++i) {
    auto const at =
        threads <= cpus.cpus.size() ? i * cpus.cpus.size() / threads : i % cpus.cpus.size();
    cpus_.push_back(cpus.cpus[at]);
    nodes_.push_back(cpus.nodes.empty() ? 0 : cpus.nodes[at]);
  }
  start(threads);
}

ROUNDPIPE_INLINE void WorkerPool::for_each_part(
    std::size_t size, std::size_t grain, std::function<void(std::size_t, std::size_t)> const& f) {
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

ROUNDPIPE_INLINE void WorkerPool::place_shards(HostBytes memory,
                                               std::size_t element_bytes,
                                               std::size_t grain) const noexcept {
  if (std::adjacent_find(nodes_.begin(), nodes_.end(), std::not_equal_to<>{}) == nodes_.end()) {
    return;
  }
  for (std::size_t worker = 0; worker < size(); ++worker) {
    auto const [begin, end] = shard_of(memory.size() / element_bytes, grain, worker, size());
    move_pages(
        memory.data() + begin * element_bytes, memory.data() + end * element_bytes, nodes_[worker]);
  }
}

ROUNDPIPE_INLINE void WorkerPool::move_pages([[maybe_unused]] std::byte const* begin,
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
    (void)syscall(
        SYS_mbind, up(begin), up(end) - up(begin), preferred, nodes, 16 * word_bits + 1, move_flag);
  }
#endif
}

ROUNDPIPE_INLINE void WorkerPool::start(std::size_t threads) {
  try {
    for (std::size_t i = 1; i < threads; ++i) {
      workers_.push_back(start_thread("a worker", [this, i, threads] { work(i, threads); }));
    }
  } catch (...) {
    stop();
    throw;
  }
}

ROUNDPIPE_INLINE void WorkerPool::stop() {
  stops_ = true;
  post();
  for (auto& worker : workers_) {
    worker.join();
  }
}

ROUNDPIPE_INLINE void WorkerPool::post() {
  {
    std::lock_guard const lock(mutex_);  // none is between its look at job_ and its sleep
    job_.fetch_add(1, std::memory_order_release);
  }
  posted_.notify_all();
}

ROUNDPIPE_INLINE void WorkerPool::work(std::size_t index, std::size_t workers) {
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

ROUNDPIPE_INLINE void WorkerPool::run_part(std::size_t index, std::size_t workers) {
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

}  // namespace roundpipe
