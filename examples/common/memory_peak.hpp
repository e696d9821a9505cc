// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The most memory that this process held of each GPU.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/other_processes.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace examples {

/// Asks the driver in regular intervals, from its construction on, on a thread of its own.
class MemoryPeak {
 public:
  /// \param devices by CUDA's numbers.
  explicit MemoryPeak(std::vector<roundpipe::DeviceId> devices,
                      std::chrono::milliseconds interval = std::chrono::milliseconds(50))
      : devices_(std::move(devices)),
        interval_(interval),
        most_(devices_.size()),
        thread_([this](std::stop_token stop) { run(stop); }) {}

  /// Samples once more. \returns by device, the most bytes so far: all that is in use, but for what
  /// other processes held before this one began.
  [[nodiscard]] std::vector<roundpipe::Bytes> bytes() {
    std::lock_guard const lock(mutex_);
    sample();
    return most_;
  }

 private:
  void run(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    try {
      do {
        sample();
      } while (!wakes_.wait_for(lock, stop, interval_, [&] { return stop.stop_requested(); }));
    } catch (roundpipe::Error const&) {
      // What the driver says to all calls, bytes() meets too.
    }
  }

  void sample() {
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      most_[d] = std::max(most_[d], roundpipe::cu::held_bytes(devices_[d]));
    }
  }

  std::vector<roundpipe::DeviceId> devices_;
  std::chrono::milliseconds interval_;
  std::vector<roundpipe::Bytes> most_;
  std::mutex mutex_;
  std::condition_variable_any wakes_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace examples
