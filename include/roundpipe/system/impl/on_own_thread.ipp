// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/system/on_own_thread.hpp>
#include <roundpipe/system/start_thread.hpp>

#include <exception>
#include <functional>

namespace roundpipe::detail {

ROUNDPIPE_INLINE void on_own_thread(std::function<void()> const& f) {
  std::exception_ptr error;
  start_thread("work on a device", [&] {
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
