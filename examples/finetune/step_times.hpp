// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How long steps take, apart from what comes between them.

#include <chrono>
#include <cstddef>

namespace finetune {

/// Counts from when it is made. A loss comes at the same point of every step, so the time between
/// two losses is that of a step, unless there was a pause between them.
class StepTimes {
 public:
  using Clock = std::chrono::steady_clock;

  /// A loss has come.
  void add_step(Clock::time_point now = Clock::now()) {
    constexpr std::size_t warm_up = 3;
    if (steps_++ > warm_up && !paused_) {
      sum_s_ += seconds_between(last_, now);
      ++counted_;
    }
    paused_ = false;
    last_ = now;
  }
  /// Something other than a step has taken time.
  void add_pause() noexcept { paused_ = true; }

  /// Since the beginning.
  [[nodiscard]] double seconds(Clock::time_point now = Clock::now()) const {
    return seconds_between(begin_, now);
  }
  /// The mean of a step, without the first ones; of all that were, in a short training. 0: no step.
  [[nodiscard]] double step_seconds() const {
    return counted_ > 0 ? sum_s_ / static_cast<double>(counted_)
           : steps_ > 0 ? seconds_between(begin_, last_) / static_cast<double>(steps_)
                        : 0;
  }

 private:
  [[nodiscard]] static double seconds_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }

  Clock::time_point begin_ = Clock::now();
  Clock::time_point last_ = begin_;
  std::size_t steps_ = 0;
  bool paused_ = false;
  double sum_s_ = 0;
  std::size_t counted_ = 0;
};

}  // namespace finetune
