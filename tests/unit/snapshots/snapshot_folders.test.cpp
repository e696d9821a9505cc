// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/snapshot_folders.hpp>

#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace snapshot_folders_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::vector<std::uint64_t> steps_in(std::filesystem::path const& folder) {
  std::vector<std::uint64_t> steps;
  for (auto const& place : list_snapshots(folder)) {
    steps.push_back(place.step);
  }
  return steps;
}

}  // namespace

TEST_CASE("the newest snapshot is that of the largest step, whatever else lies in the folder") {
  TemporaryFolder const folder;
  CHECK(snapshot_path("a", 100) == "a/step-000000100");
  CHECK(snapshot_path("a", 12345678901) == "a/step-12345678901");
  CHECK(!newest_snapshot(folder.path / "none"));
  CHECK(!newest_snapshot(folder.path));
  for (auto const* const name : {"step-000000009",
                                 "step-10",
                                 "step-000000011.partial",
                                 "step-",
                                 "step--12",
                                 "step-+12",
                                 "step-12 ",
                                 "step-99999999999999999999",
                                 "step-12345678901"}) {
    std::filesystem::create_directory(folder.path / name);
  }
  put_file(folder.path / "step-99999999999", "a file");
  CHECK(steps_in(folder.path) == std::vector<std::uint64_t>{9, 10, 12345678901});
  CHECK(newest_snapshot(folder.path) == folder.path / "step-12345678901");

  remove_old_snapshots(folder.path, 2);
  CHECK(steps_in(folder.path) == std::vector<std::uint64_t>{10, 12345678901});
  remove_old_snapshots(folder.path, 0);
  CHECK(newest_snapshot(folder.path) == folder.path / "step-12345678901");
  CHECK(std::filesystem::exists(folder.path / "step-000000011.partial"));
  remove_partial_snapshots(folder.path);
  CHECK(!std::filesystem::exists(folder.path / "step-000000011.partial"));
  CHECK(std::filesystem::exists(folder.path / "step-99999999999"));

  auto const file = put_file(folder.path / "file", "x");
  auto const error = error_of([&] { (void)newest_snapshot(file); });
  CHECK(error.code() == std::errc::not_a_directory);
  CHECK(error.message() == "cannot read the folder '" + file.string() + "'");
}

TEST_CASE("a finished folder takes the place of one with its name, or of none") {
  TemporaryFolder const folder;
  auto const path = folder.path / "step-1";
  for (auto const* const content : {"first", "second"}) {
    auto const partial = detail::partial_path(path);
    std::filesystem::create_directory(partial);
    put_file(partial / "file", content);
    detail::publish_folder(partial, path);
    CHECK(content_of(path / "file") == content);
    CHECK(!std::filesystem::exists(partial));
  }
  auto const error = error_of([&] { detail::publish_folder(folder.path / "none", path); });
  CHECK(error.code() == std::errc::no_such_file_or_directory);
  CHECK(content_of(path / "file") == "second");
}

}  // namespace snapshot_folders_test
