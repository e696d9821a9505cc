// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A gate that holds a CUDA stream until a test opens it.

#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/stream.hpp>

#include <cuda_runtime_api.h>

#include <atomic>
#include <memory>

namespace roundpipe::test {

/// The destructor opens the gate at the latest, so a failing test cannot hang.
class Gate {
 public:
  Gate() = default;
  Gate(Gate const&) = delete;
  Gate& operator=(Gate const&) = delete;
  ~Gate() { open(); }

  /// Enqueues a wait for the gate in \p stream.
  void close(cu::Stream const& stream) {
    auto pass = std::make_unique<std::shared_ptr<State>>(state_);
    cu::check(cudaLaunchHostFunc(stream.get(), &Gate::wait, pass.get()), "cudaLaunchHostFunc");
    (void)pass.release();  // wait() takes ownership
  }

  void open() {
    state_->open = true;
    state_->open.notify_all();
  }

 private:
  struct State {
    std::atomic<bool> open = false;
  };
  static void wait(void* pass) {
    std::unique_ptr<std::shared_ptr<State>> const state(static_cast<std::shared_ptr<State>*>(pass));
    (*state)->open.wait(false);
  }
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace roundpipe::test
