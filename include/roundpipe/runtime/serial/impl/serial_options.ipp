// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/runtime/serial/serial_options.hpp>

#include <cmath>

namespace roundpipe {

ROUNDPIPE_INLINE SerialOptions const& checked(SerialOptions const& options) {
  require(options.micro_batches_per_round > 0 && options.rounds > 0,
          Errc::invalid_argument,
          "micro-batches and rounds are at least 1");
  require(options.clip_norm >= 0 && std::isfinite(options.clip_norm),
          Errc::invalid_argument,
          "the norm to clip at is positive, or 0 for none");
  require(options.staleness == 0 || options.staleness == 1,
          Errc::invalid_argument,
          "staleness is 0 or 1");
  return options;
}

}  // namespace roundpipe
