// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds out which blocks somebody waits for.

#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace roundpipe::test {

/// Holds all blocks of \p readers, calls \p f on another thread, and releases each block for which
/// it waits, after \p on_wait. \returns these blocks, in order.
template <class F, class OnWait>
std::vector<BlockId> blocks_waited_for(std::shared_ptr<BlockReaders> const& readers,
                                       F&& f,
                                       OnWait&& on_wait) {
  BlockHold hold(readers);
  std::atomic<bool> done = false;
  std::thread thread([&] {
    f();
    done = true;
  });
  std::vector<BlockId> blocks;
  while (!done) {
    if (auto const block = hold.wanted(); block.valid()) {
      on_wait();
      blocks.push_back(block);
      hold.release(block);
    }
  }
  thread.join();
  return blocks;
}
template <class F>
std::vector<BlockId> blocks_waited_for(std::shared_ptr<BlockReaders> const& readers, F&& f) {
  return blocks_waited_for(readers, f, [] {});
}

}  // namespace roundpipe::test
