// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/layer_bytes.hpp>

#include <doctest/doctest.h>

namespace layer_bytes_test {

using namespace roundpipe;

TEST_CASE("by default a layer takes no bytes") {
  constexpr LayerBytes none;
  CHECK(none == LayerBytes{0, 0, 0, 0, 0});
  CHECK_FALSE(none == LayerBytes{.workspace_bytes = 1});
}

}  // namespace layer_bytes_test
