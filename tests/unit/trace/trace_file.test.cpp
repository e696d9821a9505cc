// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/trace_file.hpp>

#include <roundpipe/core/error.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>

namespace trace_file_test {

using namespace roundpipe;

TEST_CASE("Writing replaces a file") {
  test::TemporaryFolder const folder;
  auto const path = folder.path / "trace";
  std::ofstream(path) << std::string(1000, 'x');
  detail::write_trace_file(path, [](std::ostream& out) { out << "short\n"; });
  std::ifstream file(path);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == "short\n");
}

TEST_CASE("An unfinished file is removed, and the error is passed on") {
  test::TemporaryFolder const folder;
  auto const fail = [](std::ostream& out) {
    out << "half";
    throw std::runtime_error("no more");
  };
  CHECK_THROWS_WITH_AS(
      detail::write_trace_file(folder.path / "trace", fail), "no more", std::runtime_error);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE(
    "A path that cannot be opened is an error that names the path, before anything is written") {
  test::TemporaryFolder const folder;
  auto const path = folder.path / "missing" / "trace";
  bool called = false;
  try {
    detail::write_trace_file(path, [&](std::ostream&) { called = true; });
    FAIL("no error");
  } catch (Error const& error) {
    CHECK(error.code() == std::errc::no_such_file_or_directory);
    CHECK(error.message().find(path.string()) != std::string::npos);
  }
  CHECK_FALSE(called);
}

TEST_CASE("What a disk does not take when the buffer is written is an error") {
  struct FullDisk : std::stringbuf {
    int sync() override { return -1; }
  } disk;
  std::ostream out(&disk);
  out << "all of it fits the buffer";
  CHECK(out.good());
  CHECK_THROWS_AS(detail::require_written(out), Error);
}

TEST_CASE("A stream that accepts everything is good, any other stream is an error") {
  std::ostringstream out;
  CHECK_NOTHROW(detail::require_written(out));
  out.setstate(std::ios::badbit);
  CHECK_THROWS_AS(detail::require_written(out), Error);
}

TEST_CASE("Device numbers end at the timeline's device count, and the host has none") {
  TimelineEntry entry;
  entry.lane = {LaneKind::compute, DeviceId(1)};
  CHECK_NOTHROW(detail::require_known_devices({2, {entry}}));
  CHECK_THROWS_AS(detail::require_known_devices({1, {entry}}), Error);
  entry.lane = {LaneKind::optimizer, DeviceId::none()};
  CHECK_NOTHROW(detail::require_known_devices({0, {entry}}));
}

}  // namespace trace_file_test
