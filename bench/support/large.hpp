// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Whether a bench should run all of its sizes.

#include <cstdlib>
#include <string_view>

namespace roundpipe::bench {

/// Whether ROUNDPIPE_BENCH_LARGE is set, and not to 0. Without it a run is short, because CTest
/// runs every bench.
inline bool is_large() {
  auto const* const text = std::getenv("ROUNDPIPE_BENCH_LARGE");
  return text != nullptr && *text != '\0' && std::string_view(text) != "0";
}

}  // namespace roundpipe::bench
