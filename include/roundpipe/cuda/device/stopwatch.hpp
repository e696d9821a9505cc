// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Times a span of a stream's work.

#include <roundpipe/cuda/device/event.hpp>
#include <roundpipe/cuda/device/stream.hpp>

#include <cuda_runtime_api.h>

namespace roundpipe::cu::detail {

/// Measures how long a span of a stream's work takes. Made on the stream's device.
class Stopwatch {
 public:
  void start(Stream const& stream) { begin_.record(stream); }

  /// Seconds since \ref start. Blocks until the stream gets here.
  [[nodiscard]] double stop(Stream const& stream) {
    end_.record(stream);
    end_.sync();
    return end_.seconds_since(begin_);
  }

 private:
  Event begin_{cudaEventDefault};
  Event end_{cudaEventDefault};
};

}  // namespace roundpipe::cu::detail
