// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/csv_timeline.hpp>

#include <roundpipe/core/error.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace csv_timeline_test {

namespace {

using namespace roundpipe;

using Row = std::vector<std::string>;

/// Parses a table as RFC 4180, section 2, defines.
std::vector<Row> parsed(std::string const& text) {
  std::vector<Row> rows;
  Row row;
  std::string field;
  bool in_quotes = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (in_quotes) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        in_quotes = false;
      }
    } else if (c == '"') {
      CHECK(field.empty());
      in_quotes = true;
    } else if (c == ',' || c == '\r') {
      row.push_back(field);
      field.clear();
    } else if (c == '\n') {
      REQUIRE(text[i - 1] == '\r');
      rows.push_back(row);
      row.clear();
    } else {
      field += c;
    }
  }
  CHECK_FALSE(in_quotes);
  CHECK(field.empty());
  CHECK(row.empty());
  return rows;
}

std::string written(Timeline const& timeline) {
  std::ostringstream out;
  write_csv_timeline(out, timeline);
  return out.str();
}

Row const header{"call",
                 "kind",
                 "lane",
                 "device",
                 "slot",
                 "stage",
                 "round",
                 "micro_batch",
                 "layer",
                 "block",
                 "bytes",
                 "start_s",
                 "end_s"};

TimelineEntry chunk() {
  TimelineEntry entry;
  entry.graph = 5;
  entry.id = ActionId(9);
  entry.kind = ActionKind::upload_parameters;
  entry.lane = {LaneKind::parameter_up, DeviceId(1)};
  entry.slot = SlotId(4);
  entry.stage = StageId(2);
  entry.round = RoundId(1);
  entry.micro_batch = MicroBatchId(0);
  entry.bytes = 4096;
  entry.start_s = 0.125;
  entry.end_s = 0.25;
  return entry;
}

}  // namespace

TEST_CASE("Each entry is a line, and missing fields are empty") {
  TimelineEntry step;
  step.graph = 6;
  step.kind = ActionKind::optimizer_step;
  step.lane = {LaneKind::optimizer, DeviceId::none()};
  step.block = BlockId(2);
  step.start_s = 0.75;
  step.end_s = 1;
  auto const rows = parsed(written({2, {chunk(), step}}));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0] == header);
  CHECK(rows[1] == Row{"5",
                       "upload parameters",
                       "parameter up",
                       "1",
                       "4",
                       "2",
                       "1",
                       "0",
                       "",
                       "",
                       "4096",
                       "0.125",
                       "0.25"});
  CHECK(rows[2] ==
        Row{"6", "optimizer step", "optimizer", "", "", "", "", "", "", "2", "0", "0.75", "1"});
}

TEST_CASE("A timeline without entries is only a header") {
  CHECK(parsed(written({})) == std::vector<Row>{header});
}

TEST_CASE("Times and bytes survive writing and reading") {
  std::mt19937_64 random(1);
  Timeline timeline{2, {}};
  for (int i = 0; i < 1000; ++i) {
    auto entry = chunk();
    entry.bytes = random();
    entry.start_s = std::generate_canonical<double, 53>(random) * (i % 2 == 0 ? 1e-6 : 1e6);
    entry.end_s = entry.start_s * (1 + std::numeric_limits<double>::epsilon());
    timeline.entries.push_back(entry);
  }
  auto const rows = parsed(written(timeline));
  REQUIRE(rows.size() == timeline.entries.size() + 1);
  for (std::size_t i = 0; i < timeline.entries.size(); ++i) {
    CHECK(std::strtoull(rows[i + 1][10].c_str(), nullptr, 10) == timeline.entries[i].bytes);
    CHECK(std::strtod(rows[i + 1][11].c_str(), nullptr) == timeline.entries[i].start_s);
    CHECK(std::strtod(rows[i + 1][12].c_str(), nullptr) == timeline.entries[i].end_s);
  }
}

TEST_CASE("Fields with commas, quotes and line ends survive writing and reading") {
  CHECK(detail::csv_field("parameter up") == "parameter up");
  Row const awkward{"a,b", "say \"so\"", "\"", "two\r\nlines", "", ",\",\"\n"};
  std::string line;
  for (auto const& text : awkward) {
    line += (line.empty() ? "" : ",") + detail::csv_field(text);
  }
  CHECK(parsed(line + "\r\n") == std::vector<Row>{awkward});
}

TEST_CASE("A file has the same content as a stream, and a failing stream is an error") {
  test::TemporaryFolder const folder;
  auto const path = folder.path / "timeline.csv";
  save_csv_timeline(path, {2, {chunk()}});
  std::ifstream file(path, std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == written({2, {chunk()}}));

  CHECK_THROWS_AS(save_csv_timeline(folder.path / "missing" / "x.csv", {}), Error);
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  CHECK_THROWS_AS(write_csv_timeline(out, {}), Error);
}

}  // namespace csv_timeline_test
