// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/version.hpp>

#include <doctest/doctest.h>

namespace version_test {

TEST_CASE("the single version number orders like the version") {
#if ROUNDPIPE_VERSION < 100
  FAIL("0.1.0 is the first version");
#endif
  CHECK(ROUNDPIPE_VERSION / 10000 == ROUNDPIPE_VERSION_MAJOR);
  CHECK(ROUNDPIPE_VERSION / 100 % 100 == ROUNDPIPE_VERSION_MINOR);
  CHECK(ROUNDPIPE_VERSION % 100 == ROUNDPIPE_VERSION_PATCH);
}

}  // namespace version_test
