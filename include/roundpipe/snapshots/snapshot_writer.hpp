// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Saves a training again and again, beside the training.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/agree.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/background_work.hpp>
#include <roundpipe/snapshots/folder_lock.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>
#include <roundpipe/snapshots/snapshot_manifest.hpp>
#include <roundpipe/snapshots/snapshot_options.hpp>
#include <roundpipe/snapshots/staged_writes.hpp>
#include <roundpipe/snapshots/state_copy.hpp>
#include <roundpipe/snapshots/stored_tensors.hpp>
#include <roundpipe/snapshots/write_snapshot.hpp>
#include <roundpipe/system/host_memory_limit.hpp>
#include <roundpipe/system/resident_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
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
#include <utility>

namespace roundpipe {

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
/// `SerialTrainer`'s), \ref save writes it itself, and the training waits. A report says which it
/// was.
///
/// With several ranks each has a writer of a folder that all see, and with the pipeline's group.
/// The constructor and \ref save are operations of all ranks. Each writes its share of the files,
/// as it can, copied or live; no rank gets the states of others. A snapshot has its name when all
/// have written, and what fails on one rank is the error of all, with that rank's number. What they
/// tell each other has a channel of its own, so the training goes on meanwhile.
///
/// Each snapshot appears whole or not at all (see \ref write_snapshot), and older ones are removed
/// only when a newer one is on the disk. So a crash at any moment leaves at least the newest
/// complete one. An error leaves the snapshots as they are, and the training may go on: the next
/// \ref save tries anew.
///
/// A folder is of one training and of one writer (of rank 0), which holds a lock on it. Members are
/// for one thread at a time. Writer and trainer may be destroyed in any order: a trainer whose
/// state has readers waits until all that lies in its memory was read, frozen parameters, too. Any
/// other must outlive the writer, and its frozen parameters, which are not copied, must stay as
/// they are until
/// \ref wait has returned.
class SnapshotWriter {
 public:
  /// Creates \p folder unless it is there, and locks it, both on rank 0.
  /// \throws Error (std::errc::resource_unavailable_try_again) when another writer has it; with the
  ///         system's code when it cannot be created; and as \ref start_thread does.
  explicit SnapshotWriter(std::filesystem::path folder, SnapshotWriterOptions options = {})
      : folder_(std::move(folder)), options_(std::move(options)), copiers_(options_.copy_threads) {
    lead([&] {
      make_folder();
      lock_.emplace(folder_);
    });
  }
  SnapshotWriter(SnapshotWriter const&) = delete;
  SnapshotWriter& operator=(SnapshotWriter const&) = delete;
  /// Waits for the snapshot that is being written. Drops its error.
  ~SnapshotWriter() = default;

  [[nodiscard]] std::filesystem::path const& folder() const noexcept { return folder_; }

  /// Saves \p state, of the step that it tells, in place of a snapshot of this step. Waits for the
  /// snapshot before.
  /// \throws Error of the snapshot before, once, and saves nothing; (invalid_argument) when the
  ///         folder holds a snapshot of a later step, which is of another training, or of a part
  ///         that was given up; as \ref start_thread does; and where the state was not copied,
  ///         like \ref write_snapshot. The message names the path.
  SnapshotReport save(TrainingState const& state, SnapshotExtras extras = {}) {
    auto const begin = Clock::now();
    SnapshotReport report{.step = state.position.step,
                          .path = snapshot_path(folder_, state.position.step)};
    TrainingState share;
    std::shared_ptr<BlockHold> hold;
    auto const before = writing_.wait();
    try {
      together([&] {
        rethrow(before);
        if (options_.group.rank() == 0) {
          require_latest(report);
        }
        share = detail::written_share(
            state, options_.format, options_.group.rank(), options_.group.size());
        hold = share.readers ? std::make_shared<BlockHold>(share.readers) : nullptr;
        keep_moment(share, hold.get(), report);
      });
    } catch (...) {
      rethrow(before);  // as it was
      throw;
    }
    if (report.mode == SnapshotMode::waiting) {
      write(report, share, extras, nullptr);
      last_->wait_seconds = seconds_since(begin);
      return *last_;
    }
    report.wait_seconds = seconds_since(begin);
    try {
      writing_.start([this, report, share, extras = std::move(extras), hold]() mutable {
        auto const held = std::move(hold);  // until it ends here
        write(report, share, extras, held.get());
      });
    } catch (...) {
      together([] { throw; });  // the others wait for this rank
    }
    return report;
  }

  /// Whether a snapshot is being written.
  [[nodiscard]] bool is_busy() const noexcept { return writing_.is_busy(); }

  /// Waits until the last snapshot is on the disk. \throws Error of the last snapshot, once.
  void wait() { rethrow(writing_.wait()); }

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

  static void rethrow(std::exception_ptr const& error) {
    if (error) {
      std::rethrow_exception(error);
    }
  }

  void make_folder() const {
    std::error_code code;
    std::filesystem::create_directories(folder_, code);
    if (code) {
      throw file_error("create the folder", folder_, code.value());
    }
  }

  /// An operation of all ranks: each calls \p f. \throws Error on all as \ref agree does.
  template <class F>
  void together(F&& f) {
    (void)agree(options_.group, GroupChannel::snapshots, [&] {
      f();
      return std::string();
    });
  }
  /// The same, but rank 0 alone calls \p f.
  template <class F>
  void lead(F&& f) {
    together([&] {
      if (options_.group.rank() == 0) {
        f();
      }
    });
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

  /// Replaces \p state by a copy, if there is room; else \p hold, if it is there, keeps its moment.
  void keep_moment(TrainingState& state, BlockHold* hold, SnapshotReport& report) {
    report.state_bytes = StateCopy::bytes_of(state);
    auto const begin = Clock::now();
    if (auto copy = copy_of(state)) {
      report.mode = SnapshotMode::copied;
      report.copy_seconds = seconds_since(begin);
      release_trained(state, hold);
      state = *std::move(copy);
    } else if (hold != nullptr) {
      report.mode = SnapshotMode::live;
      staging_.grow(std::min(most_copy_bytes(), report.state_bytes));
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
      lead([&] { remove_partial_snapshots(folder_); });
      report.written_bytes = write_snapshot(
          report.path, state, extras, options_.format, hold, &staging_, options_.group);
      report.write_seconds = seconds_since(begin);
      report.update_wait_seconds = hold != nullptr ? hold->waited_seconds() : 0;
      last_ = report;
      lead([&] { remove_old_snapshots(folder_, options_.keep); });
    } catch (...) {
      throw current_error("snapshot of step " + std::to_string(report.step) + ": ");
    }
  }

  std::filesystem::path folder_;
  SnapshotWriterOptions options_;
  std::optional<FolderLock> lock_;  // of rank 0
  WorkerPool copiers_;
  StateCopy copy_;
  StagingMemory staging_;
  std::optional<SnapshotReport> last_;  // of the thread while it is busy, else of the caller
  BackgroundWork writing_;              // last: its thread uses all of the above
};

}  // namespace roundpipe
