// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/system/host_memory_limit.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/system/resident_set.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <string>

namespace host_memory_limit_test {

using namespace roundpipe;

Bytes of_machine(std::string const& line) {
  std::ifstream machine("/proc/meminfo");
  for (std::string word; machine >> word;) {
    if (Bytes kib = 0; word == line && machine >> kib) {
      return kib << 10U;
    }
  }
  return 0;
}

TEST_CASE("a process may take what the machine has available, less the kernel's part") {
  auto const total = of_machine("MemTotal:");
  REQUIRE(total > 0);
  auto const limit = host_memory_limit();
  CHECK(limit > 0);
  CHECK(limit <= total - total / 25);
  CHECK(limit < of_machine("MemAvailable:") + resident_set_bytes() + 64_MiB);
}

}  // namespace host_memory_limit_test
