// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Copies in pieces, between which a stream lets other copies have the engine.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/cuda/error.hpp>
#include <roundpipe/cuda/event.hpp>
#include <roundpipe/cuda/stream.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>

namespace roundpipe::cu {

/// \brief Cuts the copies of one stream into pieces.
///
/// Copies of one direction share an engine that does not preempt, and a stream that always has a
/// copy ready keeps it, whatever the priorities: another stream's copy waits for all that is queued
/// before it. So a piece waits for an event that a stream of this object's own records after the
/// piece before. For a moment there is nothing to copy, and others get their turn. It costs the
/// link about 10 us a piece.
class CopyPieces {
 public:
  /// For a stream of the current device.
  explicit CopyPieces(Bytes piece_bytes) : piece_bytes_(piece_bytes) {}

  /// Enqueues a copy on \p stream, which is always the same one. \p kind has one end on the host.
  void copy(void* to, void const* from, Bytes bytes, ::cudaMemcpyKind kind, ::cudaStream_t stream) {
    for (Bytes at = 0; at < bytes; at += piece_bytes_) {
      if (at > 0) {
        yield(stream);
      }
      check(::cudaMemcpyAsync(static_cast<std::byte*>(to) + at,
                              static_cast<std::byte const*>(from) + at,
                              std::min(piece_bytes_, bytes - at),
                              kind,
                              stream),
            "cudaMemcpyAsync");
    }
  }

 private:
  void yield(::cudaStream_t stream) {
    check(::cudaEventRecord(before_.get(), stream), "cudaEventRecord");
    other_.wait(before_);
    check(::cudaEventRecord(after_.get(), other_.get()), "cudaEventRecord");
    check(::cudaStreamWaitEvent(stream, after_.get()), "cudaStreamWaitEvent");
  }

  Bytes piece_bytes_;
  Stream other_;
  Event before_;  // the latest piece is over
  Event after_;   // the next may begin
};

}  // namespace roundpipe::cu
