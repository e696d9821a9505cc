// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What is shown while the training runs.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace train_text {

/// Seconds as "0:07", "12:30", "1:05:00".
[[nodiscard]] inline std::string clock_text(double seconds) {
  auto const s = static_cast<std::int64_t>(std::max(0.0, seconds) + 0.5);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

/// One line on a terminal, renewed several times a second; elsewhere a new line every five seconds.
class Progress {
 public:
  /// \p seconds: when the training stops before \p steps are done; 0: never.
  Progress(std::int64_t steps, double seconds, std::int64_t tokens_of_step, bool quiet)
      : steps_(steps),
        seconds_(seconds),
        tokens_of_step_(static_cast<double>(tokens_of_step)),
        quiet_(quiet),
        is_terminal_(::isatty(STDOUT_FILENO) == 1) {}
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;
  ~Progress() { end_line(); }

  /// \p done steps have taken \p elapsed_s so far, the last one had \p loss.
  void show(std::int64_t done, double loss, double elapsed_s) {
    auto const period_s = is_terminal_ ? 0.2 : 5.0;
    if (quiet_ || (done > 1 && done < steps_ && elapsed_s < shown_s_ + period_s)) {
      return;
    }
    shown_s_ = elapsed_s;
    auto const steps = static_cast<double>(done);
    auto left_s = static_cast<double>(steps_ - done) * elapsed_s / steps;
    if (seconds_ > 0) {
      left_s = std::min(left_s, seconds_ - elapsed_s);
    }
    fmt::print("{}step {:>{}}/{}   loss {:.4f}   {:.0f} tokens/s   {} left{}",
               is_terminal_ ? "\r" : "",
               done,
               fmt::formatted_size("{}", steps_),
               steps_,
               loss,
               tokens_of_step_ * steps / elapsed_s,
               clock_text(left_s),
               is_terminal_ ? "\x1b[K" : "\n");
    std::fflush(stdout);
    in_line_ = is_terminal_;
  }

  /// Ends the line that was renewed so far, if there is one.
  void end_line() noexcept {
    if (in_line_) {
      std::fputc('\n', stdout);
      in_line_ = false;
    }
  }

 private:
  std::int64_t steps_;
  double seconds_;
  double tokens_of_step_;
  bool quiet_;
  bool is_terminal_;
  bool in_line_ = false;
  double shown_s_ = 0;
};

}  // namespace train_text
