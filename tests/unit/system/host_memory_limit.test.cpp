// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/system/host_memory_limit.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/system/resident_set.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <fstream>
#include <string>

namespace host_memory_limit_test {

using namespace roundpipe;
using detail::cgroup_memory_limit;
using detail::no_memory_limit;
using detail::parse_memory_limit;
using test::TemporaryFolder;

/// As version 1 writes that there is no limit, with pages of 4 KiB and of 64 KiB.
auto const* const no_limit_v1 = "9223372036854771712";
auto const* const no_limit_v1_64 = "9223372036854710272";

Bytes of_machine(std::string const& line) {
  std::ifstream machine("/proc/meminfo");
  for (std::string word; machine >> word;) {
    if (Bytes kib = 0; word == line && machine >> kib) {
      return kib << 10U;
    }
  }
  return 0;
}

TEST_CASE("a limit of memory is a number of bytes") {
  CHECK(parse_memory_limit("4096\n") == 4096);
  CHECK(parse_memory_limit("8796093022208") == Bytes{1} << 43U);
  CHECK(parse_memory_limit("0\n") == 0);
}

TEST_CASE("without a limit, memory has none, however a group says so") {
  for (auto const* const text : {"max\n", "", "\n", no_limit_v1, no_limit_v1_64}) {
    CHECK(parse_memory_limit(text) == no_memory_limit);
  }
  for (auto const* const text : {"-1", "4096 x", "4k", "x", "99999999999999999999999"}) {
    CHECK(parse_memory_limit(text) == no_memory_limit);
  }
}

TEST_CASE("version 2: the smallest limit between the process's group and the root counts") {
  TemporaryFolder const root;
  CHECK(cgroup_memory_limit("0::/a/b\n", root.path) == no_memory_limit);
  root.write("memory.max", "max");
  root.write("a/b/memory.max", "3000");
  CHECK(cgroup_memory_limit("0::/a/b\n", root.path) == 3000);
  CHECK(cgroup_memory_limit("0::/a\n", root.path) == no_memory_limit);
  root.write("a/memory.max", "max");
  CHECK(cgroup_memory_limit("0::/a/b\n", root.path) == 3000);
  root.write("a/memory.max", "2000");  // the group around it allows less
  CHECK(cgroup_memory_limit("0::/a/b\n", root.path) == 2000);
  root.write("memory.max", "1000");
  CHECK(cgroup_memory_limit("0::/a/b\n", root.path) == 1000);
  root.write("a/b/memory.max", "500");
  CHECK(cgroup_memory_limit("0::/a/b\n", root.path) == 500);
  CHECK(cgroup_memory_limit("0::/a/other\n", root.path) == 1000);
}

TEST_CASE("in a container the limit of memory may be at the root") {
  TemporaryFolder const root;
  root.write("memory.max", "2000");
  root.write("memory/memory.limit_in_bytes", "1000");
  CHECK(cgroup_memory_limit("0::/\n", root.path) == 2000);
  CHECK(cgroup_memory_limit("0::/host/path/unseen\n", root.path) == 2000);
  CHECK(cgroup_memory_limit("5:memory:/host/path/unseen\n", root.path) == 1000);
}

TEST_CASE("version 1: the limits of the group of the controller of memory count") {
  TemporaryFolder const root;
  root.write("memory/memory.limit_in_bytes", no_limit_v1);
  root.write("memory/job/memory.limit_in_bytes", "4000");
  root.write("memory/job/step/memory.limit_in_bytes", no_limit_v1);
  root.write("memory/other/memory.limit_in_bytes", "1000");
  auto const* const membership = "5:memory:/job/step\n4:cpu,cpuacct:/other\n3:cpuset:/other\n";
  CHECK(cgroup_memory_limit(membership, root.path) == 4000);
  CHECK(cgroup_memory_limit("5:memory:/step\n", root.path) == no_memory_limit);
  CHECK(cgroup_memory_limit("3:cpuset:/job\n", root.path) == no_memory_limit);
}

TEST_CASE("with groups of both versions, the smaller limit of memory counts") {
  TemporaryFolder const root;
  auto const* const membership = "5:memory:/old\n0::/new\n";
  root.write("memory/old/memory.limit_in_bytes", "4000");
  CHECK(cgroup_memory_limit(membership, root.path) == 4000);
  root.write("unified/new/memory.max", "3000");
  CHECK(cgroup_memory_limit(membership, root.path) == 3000);
  root.write("memory/old/memory.limit_in_bytes", "2000");
  CHECK(cgroup_memory_limit(membership, root.path) == 2000);
}

TEST_CASE("malformed memberships do not limit memory") {
  TemporaryFolder const root;
  root.write("a/memory.max", "1000");
  root.write("memory/a/memory.limit_in_bytes", "1000");
  for (auto const* const text : {"", "\n", "a", "1:memory", "::", "0::", "5:memory:", "0:a"}) {
    CHECK(cgroup_memory_limit(text, root.path) == no_memory_limit);
  }
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
