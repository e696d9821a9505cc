// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/system/on_own_thread.hpp>

#include <exception>
#include <functional>
#include <thread>

namespace roundpipe::detail {

ROUNDPIPE_INLINE void on_own_thread(std::function<void()> const& f) {
  std::exception_ptr error;
  std::thread([&] {
    try {
      f();
    } catch (...) {
      error = std::current_exception();
    }
  }).join();
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace roundpipe::detail
