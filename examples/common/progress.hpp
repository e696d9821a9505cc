// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The progress display of a training.

#include <cstdint>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace examples {

/// Seconds as "0:07", "12:30", "1:05:00".
[[nodiscard]] std::string clock_text(double seconds);

/// What a training does, as far as its progress shows it.
struct ProgressOptions {
  std::int64_t steps = 0;
  std::int64_t steps_before = 0;  ///< Of \c steps, those of an earlier process.
  double seconds = 0;  ///< A limit that may end the training before all steps are done; 0: none.
  std::int64_t tokens_of_step = 0;
  double flops_of_step = 0;  ///< The model's.
  double peak_flops = 0;     ///< Of all devices, in a second; 0: unknown, no share of it is shown.
  bool quiet = false;
};

/// On a terminal one line, renewed several times a second; elsewhere a new line every five seconds.
class Progress {
 public:
  explicit Progress(ProgressOptions const& options)
      : options_(options), is_terminal_(::isatty(STDOUT_FILENO) == 1) {}
  Progress(Progress const&) = delete;
  Progress& operator=(Progress const&) = delete;
  ~Progress() { end_line(); }

  /// \p done steps are done, those of this process in \p elapsed_s, and the last had \p loss.
  void show(std::int64_t done, double loss, double elapsed_s);

  /// Ends the renewed line, if there is one.
  void end_line() noexcept {
    if (in_line_) {
      std::fputc('\n', stdout);
      in_line_ = false;
    }
  }

 private:
  ProgressOptions options_;
  bool is_terminal_;
  bool in_line_ = false;
  bool is_first_ = true;
  double shown_s_ = 0;
};

}  // namespace examples
