// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Starts a thread, or says what it would have been for.

#include <roundpipe/config.hpp>

#include <functional>
#include <string>
#include <thread>

namespace roundpipe {

/// A new thread that runs \p f, which must throw nothing. Join it before it goes.
/// \param purpose What the thread is for, as an error names it: "the optimizer".
/// \throws Error with the system's code when the system starts no more threads for this process.
[[nodiscard]] std::thread start_thread(std::string const& purpose, std::function<void()> f);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/system/impl/start_thread.ipp>
#endif
