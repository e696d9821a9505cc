// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How a training is saved again and again, and what became of it.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/snapshots/stored_tensors.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

namespace roundpipe {

struct SnapshotWriterOptions {
  std::size_t keep = 2;  ///< The last snapshots, at least 1; older ones are removed.
  /// Memory for a copy of the state, or for a buffer if the copy has no room: with 0 the state is
  /// never copied. None: half of what \ref host_memory_limit leaves beside what the process holds.
  std::optional<Bytes> copy_memory{};
  std::size_t copy_threads = 4;  ///< They copy, while the training waits.
  SnapshotFormat format{};
  /// The ranks that train together, as in the pipeline's policies. It must outlive the writer.
  AnyProcessGroup group{};
};

/// What is written, and what the training waits for meanwhile.
enum class SnapshotMode {
  copied,   ///< A copy, made while the training waits.
  live,     ///< The state where it lies, through a buffer: updates wait, each for its block.
  waiting,  ///< The same, while the training waits.
};

/// What became of a snapshot, with several ranks of this rank's share of it.
struct SnapshotReport {
  std::uint64_t step = 0;
  std::filesystem::path path;
  SnapshotMode mode = SnapshotMode::waiting;
  Bytes state_bytes = 0;    ///< Of what training changes: what a copy takes.
  Bytes buffer_bytes = 0;   ///< Of the buffer on the way to the disk; 0 while it is being written.
  Bytes written_bytes = 0;  ///< Of all files; 0 while they are being written.
  /// For how long \ref SnapshotWriter::save held up the training: until the snapshot before was on
  /// the disk, and then for the copy, or in the mode \c waiting for the writing.
  double wait_seconds = 0;
  double copy_seconds = 0;   ///< 0 without a copy.
  double write_seconds = 0;  ///< Until all was on the disk; 0 while it is being written.
  /// For how long somebody waited for blocks, in the mode \c live mostly updates. The training
  /// loses no more than that by them; less where it computes meanwhile. 0 while it is being
  /// written.
  double update_wait_seconds = 0;
};

}  // namespace roundpipe
