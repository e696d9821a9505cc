// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE void BlockReaders::wait_for_readers(BlockId block) {
  std::unique_lock lock(mutex_);
  while (readers_[block.index()] > 0) {
    if (waited_for_.empty()) {
      since_ = Clock::now();
    }
    if (std::ranges::find(waited_for_, block) == waited_for_.end()) {
      waited_for_.push_back(block);
    }
    released_.wait(lock);
  }
}

ROUNDPIPE_INLINE void BlockReaders::add_reader() {
  std::lock_guard const lock(mutex_);
  for (auto& readers : readers_) {
    ++readers;
  }
  held_.fetch_add(readers_.size(), std::memory_order_relaxed);
}

ROUNDPIPE_INLINE void BlockReaders::remove_reader(BlockId block) noexcept {
  std::lock_guard const lock(mutex_);
  held_.fetch_sub(1, std::memory_order_release);
  if (--readers_[block.index()] > 0) {
    return;
  }
  if (std::erase(waited_for_, block) > 0 && waited_for_.empty()) {
    waited_ += Clock::now() - since_;
  }
  released_.notify_all();
}

ROUNDPIPE_INLINE BlockHold::BlockHold(std::shared_ptr<BlockReaders> readers)
    : readers_(std::move(readers)), held_(readers_->blocks(), true) {
  readers_->add_reader();
  std::lock_guard const lock(readers_->mutex_);
  waited_before_ = readers_->waited_;
}

ROUNDPIPE_INLINE BlockHold::~BlockHold() {
  for (std::size_t b = 0; b < held_.size(); ++b) {
    release(BlockId(b));
  }
}

ROUNDPIPE_INLINE void BlockHold::release(BlockId block) noexcept {
  if (held_[block.index()]) {
    held_[block.index()] = false;
    readers_->remove_reader(block);
  }
}

ROUNDPIPE_INLINE BlockId BlockHold::wanted() const {
  std::lock_guard const lock(readers_->mutex_);
  auto const& wanted = readers_->waited_for_;
  auto const found =
      std::ranges::find_if(wanted, [&](BlockId block) { return held_[block.index()]; });
  return found == wanted.end() ? BlockId::none() : *found;
}

ROUNDPIPE_INLINE double BlockHold::waited_seconds() const {
  std::lock_guard const lock(readers_->mutex_);
  return std::chrono::duration<double>(readers_->waited_ - waited_before_).count();
}

}  // namespace roundpipe
