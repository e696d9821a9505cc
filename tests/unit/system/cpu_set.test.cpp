// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/system/cpu_set.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace cpu_set_test {

namespace {

using namespace roundpipe;
using test::TemporaryFolder;
using Cpus = std::vector<std::size_t>;

}  // namespace

TEST_CASE("CPU lists are parsed as Linux writes them") {
  CHECK(detail::parse_cpu_list("0-3,8,10-11\n") == Cpus{0, 1, 2, 3, 8, 10, 11});
  CHECK(detail::parse_cpu_list("5") == Cpus{5});
  CHECK(detail::parse_cpu_list("").empty());
  CHECK(detail::parse_cpu_list("\n").empty());
}

TEST_CASE("malformed parts of a list are skipped") {
  CHECK(detail::parse_cpu_list("1,x,3-,4") == Cpus{1, 4});
  CHECK(detail::parse_cpu_list("7-5,2") == Cpus{2});
  CHECK(detail::parse_cpu_list("0-99999999999999999999,2") == Cpus{2});
}

TEST_CASE("a quota is a number of microseconds in each period") {
  CHECK(detail::parse_cpu_quota("150000 100000\n") == 1.5);
  CHECK(detail::parse_cpu_quota("max 100000") == detail::no_quota);
  CHECK(detail::parse_cpu_quota("-1 100000") == detail::no_quota);
  CHECK(detail::parse_cpu_quota("100000 0") == detail::no_quota);
  CHECK(detail::parse_cpu_quota("") == detail::no_quota);
}

TEST_CASE("version 2: the smallest quota between the process's group and the root counts") {
  TemporaryFolder const root;
  CHECK(detail::cgroup_quota("0::/a/b\n", root.path) == detail::no_quota);
  root.write("a/cpu.max", "300000 100000");
  CHECK(detail::cgroup_quota("0::/a/b\n", root.path) == 3);
  root.write("a/b/cpu.max", "max 100000");
  CHECK(detail::cgroup_quota("0::/a/b\n", root.path) == 3);
  root.write("a/b/cpu.max", "50000 100000");
  CHECK(detail::cgroup_quota("0::/a/b\n", root.path) == 0.5);
  CHECK(detail::cgroup_quota("0::/a\n", root.path) == 3);
  root.write("a/b/cpu.max", "400000 100000");  // the group around it allows less
  CHECK(detail::cgroup_quota("0::/a/b\n", root.path) == 3);
  CHECK(detail::cgroup_quota("0::/other\n", root.path) == detail::no_quota);
}

TEST_CASE("version 2: in a container the limit may be at the root") {
  TemporaryFolder const root;
  root.write("cpu.max", "200000 100000");
  CHECK(detail::cgroup_quota("0::/\n", root.path) == 2);
  CHECK(detail::cgroup_quota("0::/host/path/unseen\n", root.path) == 2);
  CHECK(detail::cgroup_quota("0::/../..\n", root.path) == 2);
}

TEST_CASE("version 1: quota and period have their own files") {
  TemporaryFolder const root;
  root.write("cpu,cpuacct/job/cpu.cfs_quota_us", "400000");
  root.write("cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  root.write("cpu,cpuacct/cpu.cfs_quota_us", "-1");
  root.write("cpu,cpuacct/cpu.cfs_period_us", "100000");
  auto const membership = "5:memory:/job\n4:cpu,cpuacct:/job/step\n3:cpuset:/\n";
  CHECK(detail::cgroup_quota(membership, root.path) == 4);
  CHECK(detail::cgroup_quota("3:cpuset:/job\n", root.path) == detail::no_quota);
  TemporaryFolder const short_name;
  short_name.write("cpu/cpu.cfs_quota_us", "250000");
  short_name.write("cpu/cpu.cfs_period_us", "100000");
  CHECK(detail::cgroup_quota("4:cpuacct,cpu:/x\n", short_name.path) == 2.5);
}

TEST_CASE("malformed memberships limit nothing") {
  TemporaryFolder const root;
  for (auto const* const text : {"", "\n", "nonsense", "1:cpu", "::", "0::", "0::relative"}) {
    CHECK(detail::cgroup_quota(text, root.path) == detail::no_quota);
  }
}

TEST_CASE("CPUs are listed node by node") {
  TemporaryFolder const nodes;
  nodes.write("online", "0-1");
  nodes.write("node0/cpulist", "0,2,4,6");
  nodes.write("node1/cpulist", "1,3,5,7");
  auto const usable = detail::in_node_order({0, 1, 2, 3, 7, 9}, nodes.path);
  CHECK(usable.cpus == Cpus{0, 2, 1, 3, 7, 9});
  CHECK(usable.nodes == Cpus{0, 0, 1, 1, 1, 0});
  auto const unknown = detail::in_node_order({3, 4}, nodes.path / "none");
  CHECK(unknown.cpus == Cpus{3, 4});
  CHECK(unknown.nodes == Cpus{0, 0});
}

TEST_CASE("this process may use at least one CPU, and no more threads than CPUs") {
  auto const usable = usable_cpus();
  CHECK_FALSE(usable.cpus.empty());
  CHECK(usable.nodes.size() == usable.cpus.size());
  CHECK(usable.threads >= 1);
  CHECK(usable.threads <= usable.cpus.size());
}

#ifdef __linux__
TEST_CASE("a pinned thread runs on the CPUs that it was pinned to") {
  auto const usable = usable_cpus();
  std::thread([&] {
    Cpus const last{usable.cpus.back()};
    CHECK(pin_this_thread(last));
    CHECK(usable_cpus().cpus == last);
    CHECK(usable_cpus().threads == 1);
    CHECK_FALSE(pin_this_thread(Cpus{1'000'000}));
    CHECK_FALSE(pin_this_thread({}));
  }).join();
  CHECK(usable_cpus().cpus == usable.cpus);
}
#endif

}  // namespace cpu_set_test
