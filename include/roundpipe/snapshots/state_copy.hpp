// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A copy of a training's state in memory, from which a snapshot is written while the
/// training goes on.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cstddef>
#include <memory>

namespace roundpipe {

/// Memory for the tensors that training changes: weights, optimizer states, and what the next call
/// reads where that is older. Frozen parameters stay where they are. It keeps its memory for the
/// next copy.
class StateCopy {
 public:
  /// The bytes that a copy of \p state takes.
  [[nodiscard]] static Bytes bytes_of(TrainingState const& state) noexcept;

  /// Copies \p state with all threads of \p pool. \returns the same state, whose tensors view the
  /// copy, frozen ones excepted; they last until the next call.
  /// \throws std::bad_alloc when the system gives no memory.
  [[nodiscard]] TrainingState take(TrainingState const& state, WorkerPool& pool);

  /// The bytes of memory that it holds.
  [[nodiscard]] Bytes capacity() const noexcept { return capacity_; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  Bytes capacity_ = 0;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/snapshots/impl/state_copy.ipp>
#endif
