// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief RapidCheck's properties as doctest's assertions, and what they draw.

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cstddef>
#include <sstream>
#include <utility>

namespace roundpipe::test {

/// Fails the test case unless RapidCheck finds \p testable to hold; prints the counterexample.
/// Giving up (too many discarded cases) is a failure too.
///
/// CTest runs `property.*` with a fixed seed. The program run by hand draws a new one, unless the
/// environment variable RC_PARAMS sets it: `RC_PARAMS="seed=7 max_success=1000"`.
template <class Testable>
void check_property(Testable&& testable,
                    rc::detail::TestParams const& params = rc::detail::configuration().testParams) {
  auto const result = rc::detail::checkTestable(
      std::forward<Testable>(testable), rc::detail::TestMetadata{}, params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  INFO(message.str());
  CHECK(result.template is<rc::detail::SuccessResult>());
}

/// A number from \p first to \p last, all equally likely in every case.
inline std::size_t any_number(char const* name, std::size_t first, std::size_t last) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(first, last + 1)).as(name);
}
inline bool any_flag(char const* name) {
  return *rc::gen::arbitrary<bool>().as(name);
}

}  // namespace roundpipe::test
