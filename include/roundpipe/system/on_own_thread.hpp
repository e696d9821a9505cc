// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs what the caller waits for on a thread that is not the caller's.

#include <roundpipe/config.hpp>

#include <functional>

namespace roundpipe::detail {

/// Runs \p f on a new thread and waits for it. Layers and streams may set what belongs to a thread,
/// such as CUDA's current device; the caller's thread stays as it was.
/// \throws What \p f throws; as \ref start_thread does.
void on_own_thread(std::function<void()> const& f);

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/on_own_thread.ipp>
#endif
