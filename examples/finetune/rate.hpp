// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The learning rate of the command line, and AdamW with it.

#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/learning_rate.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>

#include "options.hpp"

namespace finetune {

/// The share of the highest rate in step \p step of \p steps, counted from 1: step / warmup during
/// the warm-up; behind it, along \p schedule, 1 in the first step, and 0 would come behind the
/// last.
[[nodiscard]] inline double rate_share(std::string const& schedule,
                                       std::int64_t warmup,
                                       std::int64_t steps,
                                       std::int64_t step) {
  if (step <= warmup) {
    return static_cast<double>(step) / static_cast<double>(warmup);
  }
  auto const all = static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
  auto const done = std::min(1.0, static_cast<double>(step - 1 - warmup) / all);
  return schedule == "linear"   ? 1 - done
         : schedule == "cosine" ? (1 + std::cos(std::numbers::pi * done)) / 2
                                : 1;
}

[[nodiscard]] inline roundpipe::AdamW optimizer_of(Options const& o, std::int64_t steps) {
  roundpipe::LearningRate rate(
      [peak = o.rate, schedule = o.schedule, warmup = o.warmup, steps](std::uint64_t step) {
        return peak * rate_share(schedule, warmup, steps, static_cast<std::int64_t>(step));
      });
  return roundpipe::AdamW({.rate = std::move(rate),
                           .beta1 = o.beta1,
                           .beta2 = o.beta2,
                           .epsilon = o.epsilon,
                           .weight_decay = o.weight_decay});
}

}  // namespace finetune
