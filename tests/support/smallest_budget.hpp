// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The smallest budget of a plan, as an error names it.

#include <support/error_of.hpp>

#include <rapidcheck.h>

#include <string>
#include <utility>

namespace roundpipe::test {

/// The smallest budget that works, as the error of \p plan names it; a tiny budget makes \p plan
/// fail.
template <class F>
Bytes smallest_budget(F&& plan) {
  auto const error = error_of(std::forward<F>(plan)).message();
  std::string const before = "smallest budget that works is ";
  auto const found = error.find(before);
  RC_ASSERT(found != std::string::npos);
  return std::stoull(error.substr(found + before.size()));
}

}  // namespace roundpipe::test
