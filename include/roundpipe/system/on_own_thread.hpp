// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs what the caller waits for on a thread that is not the caller's.

#include <roundpipe/config.hpp>

#include <cstddef>
#include <functional>

namespace roundpipe::detail {

/// Runs \p f on a new thread and waits for it. Layers and streams may set what belongs to a thread,
/// such as CUDA's current device; the caller's thread stays as it was.
/// \throws What \p f throws; as \ref start_thread does.
void on_own_thread(std::function<void()> const& f);

/// Runs \p f(0), \p f(1), ..., \p f(count - 1) at once, each on a new thread, and waits for all.
/// \throws What the call with the least number throws, of those that throw; as \ref start_thread
/// does.
void on_own_threads(std::size_t count, std::function<void(std::size_t)> const& f);

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/on_own_thread.ipp>
#endif
