// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/system/on_own_thread.hpp>
#include <roundpipe/system/start_thread.hpp>

#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace roundpipe::detail {

ROUNDPIPE_INLINE void on_own_thread(std::function<void()> const& f) {
  on_own_threads(1, [&](std::size_t) { f(); });
}

ROUNDPIPE_INLINE void on_own_threads(std::size_t count, std::function<void(std::size_t)> const& f) {
  std::vector<std::exception_ptr> errors(count);
  {
    std::vector<std::thread> threads;
    struct Joining {
      std::vector<std::thread>& threads;
      ~Joining() {
        for (auto& thread : threads) {
          thread.join();
        }
      }
    } const joining{threads};
    for (std::size_t i = 0; i < count; ++i) {
      threads.push_back(start_thread("work on a device", [&, i] {
        try {
          f(i);
        } catch (...) {
          errors[i] = std::current_exception();
        }
      }));
    }
  }
  for (auto const& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
}

}  // namespace roundpipe::detail
