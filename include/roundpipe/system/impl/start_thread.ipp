// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/system/start_thread.hpp>

#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE std::thread start_thread(std::string const& purpose, std::function<void()> f) {
  try {
    return std::thread(std::move(f));
  } catch (std::system_error const& error) {
    throw Error(error.code(),
                "the system starts no thread for " + purpose +
                    ": is there a limit on threads or on memory?");
  }
}

}  // namespace roundpipe
