// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace train_text {

std::string clock_text(double seconds) {
  auto const s = static_cast<std::int64_t>(std::max(0.0, seconds) + 0.5);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

void Progress::show(std::int64_t done, double loss, double elapsed_s) {
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

}  // namespace train_text
