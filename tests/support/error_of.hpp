// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Returns the error that a call throws.

#include <roundpipe/core/error.hpp>

#include <functional>
#include <system_error>
#include <utility>

namespace roundpipe::test {

/// The Error that \p f throws; an Error without a code if \p f throws none.
template <class F>
Error error_of(F&& f) {
  try {
    std::invoke(std::forward<F>(f));
  } catch (Error const& error) {
    return error;
  }
  return {std::error_code{}, "nothing was thrown"};
}

}  // namespace roundpipe::test
