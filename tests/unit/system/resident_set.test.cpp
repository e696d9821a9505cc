// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/system/resident_set.hpp>

#include <roundpipe/core/bytes.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>

namespace resident_set_test {

using namespace roundpipe;

TEST_CASE("memory counts when it is touched") {
  constexpr std::size_t size = 64_MiB;
  auto const before = resident_set_bytes();
  REQUIRE(before > 0);
  auto const memory = std::make_unique<std::byte[]>(size);  // zeroed
  auto const after = resident_set_bytes();
  CHECK(memory[size - 1] == std::byte{});
  CHECK(after >= before + size - 1_MiB);
}

}  // namespace resident_set_test
