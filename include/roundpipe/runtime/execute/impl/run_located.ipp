// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/run_located.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <exception>
#include <string>

namespace roundpipe {

namespace detail {

[[noreturn]] ROUNDPIPE_INLINE void rethrow_located(RunState const& run,
                                                   ActionId id,
                                                   std::string const& where) {
  auto const located = [&](char const* reason) {
    return run.program().label(id) + where + ": " + reason;
  };
  try {
    throw;
  } catch (Error const& error) {
    throw Error(error.code(), located(error.message().c_str()), error.where());
  } catch (std::exception const& error) {
    throw Error(Errc::device_fault, located(error.what()));
  }
}

}  // namespace detail

}  // namespace roundpipe
