// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Errors that name the action that they come from.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <string>

namespace roundpipe {

namespace detail {

/// Throws the exception under way, which comes from action \p id of \p run, with the action's name.
/// \throws Error with the code and the place of the exception; (device fault) where it is no Error.
[[noreturn]] void rethrow_located(RunState const& run, ActionId id, std::string const& where);

}  // namespace detail

/// Calls \p f for action \p id of \p run. What \p f throws comes out with the action's name and \p
/// where.
/// \throws Error with the code and the place of what \p f throws; (device fault) where that is no
///         Error.
template <class F>
void run_located(RunState const& run, ActionId id, std::string const& where, F&& f) {
  try {
    f();
  } catch (...) {
    detail::rethrow_located(run, id, where);
  }
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/execute/impl/run_located.ipp>
#endif
