// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace examples {

std::string clock_text(double seconds) {
  auto const s = static_cast<std::int64_t>(std::max(0.0, seconds) + 0.5);
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

void Progress::show(std::int64_t done, double loss, double elapsed_s) {
  auto const& o = options_;
  auto const period_s = is_terminal_ ? 0.2 : 5.0;
  bool const is_first = std::exchange(is_first_, false);
  if (o.quiet || (!is_first && done < o.steps && elapsed_s < shown_s_ + period_s)) {
    return;
  }
  shown_s_ = elapsed_s;
  auto const steps = static_cast<double>(done - o.steps_before);
  auto left_s = static_cast<double>(o.steps - done) * elapsed_s / steps;
  if (o.seconds > 0) {
    left_s = std::min(left_s, o.seconds - elapsed_s);
  }
  auto const mfu = o.peak_flops > 0
                       ? fmt::format("MFU {:.1f} %   ",
                                     100 * o.flops_of_step * steps / (elapsed_s * o.peak_flops))
                       : "";
  fmt::print("{}step {:>{}}/{}   loss {:.4f}   {:.0f} tokens/s   {}{} left{}",
             is_terminal_ ? "\r" : "",
             done,
             fmt::formatted_size("{}", o.steps),
             o.steps,
             loss,
             static_cast<double>(o.tokens_of_step) * steps / elapsed_s,
             mfu,
             clock_text(left_s),
             is_terminal_ ? "\x1b[K" : "\n");
  std::fflush(stdout);
  in_line_ = is_terminal_;
}

}  // namespace examples
