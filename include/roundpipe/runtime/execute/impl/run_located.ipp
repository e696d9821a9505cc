// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/run_located.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <string>

namespace roundpipe {

namespace detail {

[[noreturn]] ROUNDPIPE_INLINE void rethrow_located(RunState const& run,
                                                   ActionId id,
                                                   std::string const& where) {
  throw current_error(run.program().label(id) + where + ": ");
}

}  // namespace detail

}  // namespace roundpipe
