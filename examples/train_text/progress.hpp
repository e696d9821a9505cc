// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The progress display of a training.

#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace train_text {

/// Seconds as "0:07", "12:30", "1:05:00".
[[nodiscard]] std::string clock_text(double seconds);

/// On a terminal one line, renewed several times a second; elsewhere a new line every five seconds.
class Progress {
 public:
  /// \p seconds is the time limit that may end the training before \p steps are done; 0: no limit.
  Progress(std::int64_t steps, double seconds, std::int64_t tokens_of_step, bool quiet)
      : steps_(steps),
        seconds_(seconds),
        tokens_of_step_(static_cast<double>(tokens_of_step)),
        quiet_(quiet),
        is_terminal_(::isatty(STDOUT_FILENO) == 1) {}
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;
  ~Progress() { end_line(); }

  /// \p done steps have taken \p elapsed_s so far, and the last one had \p loss.
  void show(std::int64_t done, double loss, double elapsed_s);

  /// Ends the renewed line, if there is one.
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
