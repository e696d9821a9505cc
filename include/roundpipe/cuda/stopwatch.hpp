// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Times a span of a stream's work.

#include <roundpipe/cuda/error.hpp>
#include <roundpipe/cuda/stream.hpp>

#include <cuda_runtime_api.h>

namespace roundpipe::cu::detail {

/// A span of a stream's time.
class Stopwatch {
 public:
  Stopwatch() {
    check(::cudaEventCreate(&begin_), "cudaEventCreate");
    if (auto const status = ::cudaEventCreate(&end_); status != ::cudaSuccess) {
      (void)::cudaEventDestroy(begin_);
      check(status, "cudaEventCreate");
    }
  }
  Stopwatch(Stopwatch const&) = delete;
  Stopwatch& operator=(Stopwatch const&) = delete;
  ~Stopwatch() {
    (void)::cudaEventDestroy(begin_);
    (void)::cudaEventDestroy(end_);
  }

  void start(Stream const& stream) {
    check(::cudaEventRecord(begin_, stream.get()), "cudaEventRecord");
  }
  /// Milliseconds since \ref start. Blocks until the stream is here.
  [[nodiscard]] float stop(Stream const& stream) {
    check(::cudaEventRecord(end_, stream.get()), "cudaEventRecord");
    check(::cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    check(::cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  ::cudaEvent_t begin_ = nullptr;
  ::cudaEvent_t end_ = nullptr;
};

}  // namespace roundpipe::cu::detail
