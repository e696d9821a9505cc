// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The main function that all programs share.

#include <common/one_line.hpp>

#include <cstdio>
#include <exception>

namespace examples {

/// Calls \p run with the options that \p parse(argc, argv) returns, if any. \returns the exit
/// status: 2 when either throws. The error is then printed in one line that begins with \p name.
template <class Parse, class Run>
int run_program(char const* name, Parse&& parse, Run&& run, int argc, char const* const* argv) {
  try {
    if (auto const options = parse(argc, argv)) {
      run(*options);
    }
    return 0;
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s: %s\n", name, one_line(error).c_str());
    return 2;
  }
}

}  // namespace examples
