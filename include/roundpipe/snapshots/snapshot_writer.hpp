// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Saves a training again and again, beside the training.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/folder_lock.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>
#include <roundpipe/snapshots/snapshot_manifest.hpp>
#include <roundpipe/snapshots/staged_writes.hpp>
#include <roundpipe/snapshots/state_copy.hpp>
#include <roundpipe/snapshots/write_snapshot.hpp>
#include <roundpipe/system/host_memory_limit.hpp>
#include <roundpipe/system/resident_set.hpp>
#include <roundpipe/system/start_thread.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace roundpipe {

struct SnapshotWriterOptions {
  std::size_t keep = 2;  ///< The last snapshots, at least 1; older ones are removed.
  /// Memory for a copy of the state, or for a buffer if the copy has no room: with 0 the state is
  /// never copied. None: half of what \ref host_memory_limit leaves beside what the process holds.
  std::optional<Bytes> copy_memory{};
  std::size_t copy_threads = 4;  ///< They copy, while the training waits.
  SnapshotFormat format{};
};

/// What is written, and what the training waits for meanwhile.
enum class SnapshotMode {
  copied,   ///< A copy, made while the training waits.
  live,     ///< The state where it lies, through a buffer: updates wait, each for its block.
  waiting,  ///< The same, while the training waits.
};

/// What became of a snapshot.
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

/// \brief Writes the snapshots of a training into a folder, and keeps the last few.
///
/// ```cpp
/// SnapshotWriter writer("out/snapshots");
/// ...
///   pipeline.step();
///   if (step % 100 == 0) {
///     writer.save(pipeline.state(), {.data = loader.position()});
///   }
/// ...
/// writer.wait();  // for the last one, and its error
/// ```
///
/// A snapshot is of the moment at which \ref save is called. Where memory allows, \ref save copies
/// the state, and a thread writes the copy while the training goes on. Where the copy has no room,
/// the state goes block by block through a buffer, and whoever is about to overwrite a block that
/// is not there yet waits for it; such blocks come first. If the state has no \c readers (a
/// `SerialTrainer`'s, or one whose blocks ranks share), \ref save writes it itself, and the
/// training waits. A report says which it was.
///
/// Each snapshot appears whole or not at all (see \ref write_snapshot), and older ones are removed
/// only when a newer one is on the disk. So a crash at any moment leaves at least the newest
/// complete one. An error leaves the snapshots as they are, and the training may go on: the next
/// \ref save tries anew.
///
/// A folder is of one training and of one writer, which holds a lock on it. Members are for one
/// thread at a time. Writer and trainer may be destroyed in any order: a trainer whose state has
/// readers waits until all that lies in its memory was read, frozen parameters, too. Any other must
/// outlive the writer, and its frozen parameters, which are not copied, must stay as they are until
/// \ref wait has returned.
class SnapshotWriter {
 public:
  /// Creates \p folder unless it is there, and locks it.
  /// \throws Error (std::errc::resource_unavailable_try_again) when another writer has it; with the
  ///         system's code when it cannot be created; and as \ref start_thread does.
  explicit SnapshotWriter(std::filesystem::path folder, SnapshotWriterOptions options = {})
      : folder_(made(std::move(folder))),
        options_(std::move(options)),
        lock_(folder_),
        copiers_(options_.copy_threads) {}
  SnapshotWriter(SnapshotWriter const&) = delete;
  SnapshotWriter& operator=(SnapshotWriter const&) = delete;
  /// Waits for the snapshot that is being written. Drops its error.
  ~SnapshotWriter() { join(); }

  [[nodiscard]] std::filesystem::path const& folder() const noexcept { return folder_; }

  /// Saves \p state, of the step that it tells, in place of a snapshot of this step. Waits for the
  /// snapshot before.
  /// \throws Error of the snapshot before, once, and saves nothing; (invalid_argument) when the
  ///         folder holds a snapshot of a later step, which is of another training, or of a part
  ///         that was given up; as \ref start_thread does; and where the state was not copied,
  ///         like \ref write_snapshot. The message names the path.
  SnapshotReport save(TrainingState const& state, SnapshotExtras extras = {}) {
    auto const begin = Clock::now();
    wait();
    SnapshotReport report{.step = state.position.step,
                          .path = snapshot_path(folder_, state.position.step)};
    require_latest(report);
    report.state_bytes = StateCopy::bytes_of(state);
    auto hold = state.readers ? std::make_shared<BlockHold>(state.readers) : nullptr;
    auto const copy_begin = Clock::now();
    auto copy = copy_of(state);
    if (copy) {
      report.mode = SnapshotMode::copied;
      report.copy_seconds = seconds_since(copy_begin);
      release_trained(state, hold.get());
    } else if (hold) {
      report.mode = SnapshotMode::live;
      staging_.grow(std::min(most_copy_bytes(), report.state_bytes));
    } else {
      write(report, state, extras, nullptr);
      last_->wait_seconds = seconds_since(begin);
      return *last_;
    }
    report.wait_seconds = seconds_since(begin);
    start([this,
           report,
           written = copy ? std::move(*copy) : state,
           extras = std::move(extras),
           hold = std::move(hold)]() mutable {
      auto const held = std::move(hold);  // until it ends here
      write(report, written, extras, held.get());
    });
    return report;
  }

  /// Whether a snapshot is being written.
  [[nodiscard]] bool is_busy() const noexcept { return busy_.load(std::memory_order_acquire); }

  /// Waits until the last snapshot is on the disk. \throws Error of the last snapshot, once.
  void wait() {
    join();
    if (error_) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

  /// The same without waiting: tells of the error of a snapshot, if there is one by now.
  /// \throws Error of the last snapshot, once.
  void check() {
    if (!is_busy()) {
      wait();
    }
  }

  /// The last snapshot that came to the disk; none before the first, or while one is being written.
  [[nodiscard]] std::optional<SnapshotReport> last() const {
    return is_busy() ? std::nullopt : last_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  [[nodiscard]] static std::filesystem::path made(std::filesystem::path folder) {
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    if (code) {
      throw file_error("create the folder", folder, code.value());
    }
    return folder;
  }

  /// Runs \p f on the thread, and keeps its error.
  template <class F>
  void start(F f) {
    busy_.store(true, std::memory_order_relaxed);
    try {
      thread_ = start_thread("writing snapshots", [this, f = std::move(f)]() mutable {
        try {
          f();
        } catch (...) {
          error_ = std::current_exception();
        }
        busy_.store(false, std::memory_order_release);
      });
    } catch (...) {
      busy_.store(false, std::memory_order_relaxed);
      throw;
    }
  }

  void join() noexcept {
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  void require_latest(SnapshotReport const& report) const {
    auto const places = list_snapshots(folder_);
    if (!places.empty() && places.back().step > report.step) {
      throw Error(Errc::invalid_argument,
                  "cannot save step " + std::to_string(report.step) + " beside " +
                      path_in_quotes(places.back().path) +
                      ", which is later: a folder is of one training; choose another, or remove "
                      "what you have given up");
    }
  }

  /// A copy of \p state, if there is room.
  [[nodiscard]] std::optional<TrainingState> copy_of(TrainingState const& state) {
    auto const bytes = StateCopy::bytes_of(state);
    if (bytes > copy_.capacity() && bytes > most_copy_bytes()) {
      return std::nullopt;
    }
    try {
      return copy_.take(state, copiers_);
    } catch (std::bad_alloc const&) {
      return std::nullopt;
    }
  }

  [[nodiscard]] Bytes most_copy_bytes() const {
    auto const limit = host_memory_limit();
    auto const held = resident_set_bytes();
    return options_.copy_memory.value_or(limit > held ? (limit - held) / 2 : 0);
  }

  /// Releases the blocks of \p hold that a copy of \p state holds.
  static void release_trained(TrainingState const& state, BlockHold* hold) {
    for (auto const& parameter : state.parameters) {
      if (hold != nullptr && !parameter.frozen) {
        hold->release(parameter.block);
      }
    }
  }

  /// Writes a snapshot, and removes what it makes old.
  void write(SnapshotReport report,
             TrainingState const& state,
             SnapshotExtras const& extras,
             BlockHold* hold) {
    auto const begin = Clock::now();
    try {
      report.buffer_bytes = staging_.bytes();
      remove_partial_snapshots(folder_);
      report.written_bytes =
          write_snapshot(report.path, state, extras, options_.format, hold, &staging_);
      report.write_seconds = seconds_since(begin);
      report.update_wait_seconds = hold != nullptr ? hold->waited_seconds() : 0;
      last_ = report;
      remove_old_snapshots(folder_, options_.keep);
    } catch (...) {
      throw current_error("snapshot of step " + std::to_string(report.step) + ": ");
    }
  }

  std::filesystem::path folder_;
  SnapshotWriterOptions options_;
  FolderLock lock_;
  WorkerPool copiers_;
  StateCopy copy_;
  StagingMemory staging_;
  // Of the thread while busy_, else of the caller.
  std::optional<SnapshotReport> last_;
  std::exception_ptr error_;
  std::atomic<bool> busy_ = false;
  std::thread thread_;
};

}  // namespace roundpipe
