// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/system/control_groups.hpp>

#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace control_groups_test {

namespace {

using namespace roundpipe;
using Folders = std::vector<std::string>;

}  // namespace

TEST_CASE("version 2: the group's folder, those of all groups around it, and the root's") {
  auto const folders = detail::group_folders("0::/a/b.c/d\n", "/root", "cpu");
  CHECK(folders.v1.empty());
  CHECK(folders.v2 == Folders{"/root//a/b.c/d",
                              "/root//a/b.c",
                              "/root//a",
                              "/root/",
                              "/root/unified//a/b.c/d",
                              "/root/unified//a/b.c",
                              "/root/unified//a",
                              "/root/unified/"});
  CHECK(detail::group_folders("0::/\n", "/r", "cpu").v2 == Folders{"/r/", "/r/unified/"});
}

TEST_CASE("version 1: the controller's folders, by its mount's name or its own") {
  auto const* const membership = "7:memory:/job/step\n4:cpuacct,cpu:/job\n3:cpuset:/other\n";
  auto const cpu = detail::group_folders(membership, "/r", "cpu");
  CHECK(cpu.v1 == Folders{"/r/cpuacct,cpu//job", "/r/cpuacct,cpu/", "/r/cpu//job", "/r/cpu/"});
  CHECK(cpu.v2.empty());
  auto const memory = detail::group_folders(membership, "/r", "memory");
  CHECK(memory.v1 == Folders{"/r/memory//job/step", "/r/memory//job", "/r/memory/"});
  CHECK(detail::group_folders(membership, "/r", "pids").v1.empty());
}

TEST_CASE("a process may be in groups of both versions") {
  auto const both = detail::group_folders("4:memory:/old\n0::/new\n", "/r", "memory");
  CHECK(both.v1.front() == "/r/memory//old");
  CHECK(both.v2.front() == "/r//new");
}

TEST_CASE("malformed lines of a membership are skipped") {
  for (auto const* const text : {"", "\n", "nonsense", "1:cpu", ":", "cpu"}) {
    auto const folders = detail::group_folders(text, "/r", "cpu");
    CHECK(folders.v1.empty());
    CHECK(folders.v2.empty());
  }
  auto const next = detail::group_folders("nonsense\n0::relative/path//\n", "/r", "cpu");
  CHECK(next.v2.front() == "/r/relative/path");
  CHECK(next.v2[2] == "/r/");
}

TEST_CASE("the text of a file that is not there is empty") {
  test::TemporaryFolder const folder;
  folder.write("a/file", "one\ntwo");
  CHECK(detail::text_of(folder.path / "a/file") == "one\ntwo\n");
  CHECK(detail::text_of(folder.path / "a/other").empty());
}

}  // namespace control_groups_test
