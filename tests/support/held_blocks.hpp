// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds out which blocks somebody waits for, and reads a live state slowly.

#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>
#include <roundpipe/runtime/state/training_state.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
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
    std::this_thread::yield();
  }
  thread.join();
  return blocks;
}
template <class F>
std::vector<BlockId> blocks_waited_for(std::shared_ptr<BlockReaders> const& readers, F&& f) {
  return blocks_waited_for(readers, f, [] {});
}

using Tensors = std::map<std::string, std::vector<std::byte>>;  // by name

/// A copy of the tensors that a restored training reads.
inline Tensors read_tensors(TrainingState const& state) {
  Tensors copies;
  for_each_tensor(state, [&](std::string const& name, HostTensor const& tensor) {
    copies[name].assign(tensor.bytes.begin(), tensor.bytes.end());
  });
  return copies;
}

/// Waits for up to some tenths of a millisecond.
inline void pause(std::uint64_t microseconds) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::microseconds(microseconds);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

/// Reads a live state on a thread, block after block in any order, with pauses.
class SlowReader {
 public:
  SlowReader(TrainingState const& state, std::uint32_t seed)
      : position(state.position), thread_([this, state, seed] {
          BlockHold hold(state.readers);
          is_held_ = true;
          is_held_.notify_all();
          std::minstd_rand random(seed);
          auto rest = state.parameters;
          while (!rest.empty()) {
            pause(random() % 300);
            auto const wanted = random() % 2 == 0 ? hold.wanted() : BlockId::none();
            auto const block = wanted.valid() ? wanted : rest[random() % rest.size()].block;
            TrainingState part{position, {}};
            std::erase_if(rest, [&](ParameterState const& parameter) {
              if (parameter.block == block) {
                part.parameters.push_back(parameter);
              }
              return parameter.block == block;
            });
            tensors.merge(read_tensors(part));
            hold.release(block);
          }
        }) {
    is_held_.wait(false);
  }
  ~SlowReader() { join(); }

  void join() {
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  TrainingPosition position;
  Tensors tensors;  // after join()

 private:
  std::atomic<bool> is_held_ = false;
  std::thread thread_;  // last
};

}  // namespace roundpipe::test
