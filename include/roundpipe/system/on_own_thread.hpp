// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the caller waits for, on a thread that is not the caller's.

#include <future>
#include <utility>

namespace roundpipe::detail {

/// Runs \p f on a new thread, waits for it and \returns what it returns. Layers and streams may set
/// what belongs to a thread, such as CUDA's current device; so the caller's stays as it was.
/// \throws What \p f throws, and std::system_error where the machine has no more threads.
template <class F>
decltype(auto) on_own_thread(F&& f) {
  return std::async(std::launch::async, std::forward<F>(f)).get();
}

}  // namespace roundpipe::detail
