// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Less work for tests under a tool that slows each kernel down a hundredfold.

#include <cstdlib>
#include <initializer_list>
#include <iterator>
#include <vector>

namespace roundpipe::test {

/// Whether ROUNDPIPE_TEST_BRIEF is set: a test then does what launches each of its kernels, but
/// does not repeat them for every variant.
[[nodiscard]] inline bool is_brief() {
  return std::getenv("ROUNDPIPE_TEST_BRIEF") != nullptr;
}

/// \p all variants of a test, or the last one where it is brief.
template <class T>
[[nodiscard]] std::vector<T> variants(std::initializer_list<T> all) {
  return is_brief() ? std::vector<T>{*std::prev(all.end())} : std::vector<T>(all);
}

}  // namespace roundpipe::test
