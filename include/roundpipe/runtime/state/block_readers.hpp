// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Lets a thread read the blocks of a live state, one after the other, while the training
/// goes on.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace roundpipe {

/// Who reads the blocks of a trainer's parameters: whoever overwrites a block waits for its
/// readers, which hold it by a \ref BlockHold. Any thread may call any member.
class BlockReaders {
 public:
  explicit BlockReaders(std::size_t blocks) : readers_(blocks) {}
  BlockReaders(BlockReaders const&) = delete;
  BlockReaders& operator=(BlockReaders const&) = delete;

  [[nodiscard]] std::size_t blocks() const noexcept { return readers_.size(); }

  /// Whether anybody holds any block.
  [[nodiscard]] bool is_held() const noexcept { return held_.load(std::memory_order_acquire) > 0; }

  /// Blocks until nobody holds \p block. Costs a load where nobody holds any.
  void wait(BlockId block) {
    if (is_held()) {
      wait_for_readers(block);
    }
  }
  /// The same for every block.
  void wait_for_all() {
    for (std::size_t b = 0; b < blocks(); ++b) {
      wait(BlockId(b));
    }
  }

 private:
  friend class BlockHold;
  using Clock = std::chrono::steady_clock;

  void wait_for_readers(BlockId block);
  void add_reader();
  void remove_reader(BlockId block) noexcept;

  std::atomic<std::size_t> held_ = 0;  // readers of all blocks together
  mutable std::mutex mutex_;           // of the rest
  std::condition_variable released_;
  std::vector<std::size_t> readers_;  // by block
  std::vector<BlockId> waited_for_;
  Clock::time_point since_;  // since when there are such
  Clock::duration waited_{};
};

/// \brief Holds all blocks of a \ref TrainingState until each is released, or this goes.
///
/// The trainer goes on meanwhile, but for the updates of blocks that are still held. So release
/// each block as soon as it was read, and first those that are \ref wanted; and never let the
/// thread that holds blocks wait for the trainer. For one thread at a time.
class BlockHold {
 public:
  /// Call it with `TrainingState::readers`, before the trainer's next call.
  explicit BlockHold(std::shared_ptr<BlockReaders> readers);
  BlockHold(BlockHold const&) = delete;
  BlockHold& operator=(BlockHold const&) = delete;
  ~BlockHold();

  /// Says that this reads nothing of \p block any more. Once more does nothing.
  void release(BlockId block) noexcept;

  /// A block that is held, and for which somebody waits; none() if there is none.
  [[nodiscard]] BlockId wanted() const;

  /// For how long anybody has waited for blocks since this holds them, in seconds.
  [[nodiscard]] double waited_seconds() const;

 private:
  std::shared_ptr<BlockReaders> readers_;
  std::vector<bool> held_;  // by block
  BlockReaders::Clock::duration waited_before_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/block_readers.ipp>
#endif
