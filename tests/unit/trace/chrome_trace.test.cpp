// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/chrome_trace.hpp>

#include <roundpipe/core/error.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace chrome_trace_test {

namespace {

using namespace roundpipe;
using nlohmann::json;

/// One micro-batch of layer 3 on device 1, its parameters, and an optimizer step.
Timeline example() {
  TimelineEntry forward;
  forward.graph = 5;
  forward.id = ActionId(17);
  forward.kind = ActionKind::forward;
  forward.lane = {LaneKind::compute, DeviceId(1)};
  forward.slot = SlotId(4);
  forward.stage = StageId(2);
  forward.round = RoundId(1);
  forward.micro_batch = MicroBatchId(0);
  forward.layer = LayerId(3);
  forward.start_s = 0.25;
  forward.end_s = 0.5;

  TimelineEntry upload = forward;
  upload.id = ActionId(9);
  upload.kind = ActionKind::upload_parameters;
  upload.lane.kind = LaneKind::parameter_up;
  upload.layer = LayerId::none();
  upload.bytes = 4096;
  upload.start_s = 0.125;
  upload.end_s = 0.25;

  TimelineEntry step;
  step.graph = 6;
  step.id = ActionId(0);
  step.kind = ActionKind::optimizer_step;
  step.lane = {LaneKind::optimizer, DeviceId::none()};
  step.block = BlockId(2);
  step.start_s = 0.75;
  step.end_s = 1;
  return {2, {upload, forward, step}};
}

/// A timeline of \p count actions on the lanes of 3 devices and the host, each zero or a random
/// number of eighths of a second long. Flows lead from some actions to actions that start later.
Timeline random_timeline(std::uint32_t seed, std::size_t count) {
  std::mt19937 random(seed);
  auto const below = [&](std::size_t n) { return random() % n; };
  Timeline timeline{3, {}};
  std::map<Lane, double> free_s;
  for (std::size_t i = 0; i < count; ++i) {
    TimelineEntry entry;
    entry.id = ActionId(i);
    bool const on_host = below(5) == 0;
    entry.lane = on_host
                     ? Lane{static_cast<LaneKind>(device_lane_count + below(host_lane_count)), {}}
                     : Lane{static_cast<LaneKind>(below(device_lane_count)), DeviceId(below(3))};
    auto& free = free_s[entry.lane];
    entry.start_s = free + static_cast<double>(below(3)) / 8;
    entry.end_s = entry.start_s + static_cast<double>(below(4)) / 8;
    free = entry.end_s;
    timeline.entries.push_back(entry);
  }
  for (std::size_t from = 0; from < count; ++from) {
    for (std::size_t tries = 0; tries < 4; ++tries) {
      auto const to = below(count);
      auto const end_s = timeline.entries[from].end_s;
      auto const start_s = timeline.entries[to].start_s;
      if (from < to ? end_s <= start_s : end_s < start_s) {
        timeline.flows.push_back({from, to});
      }
    }
  }
  return timeline;
}

json written(Timeline const& timeline) {
  std::ostringstream out;
  write_chrome_trace(timeline, out);
  return json::parse(out.str());
}

std::vector<json> events(json const& trace, std::string const& phase) {
  std::vector<json> result;
  for (auto const& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) {
      result.push_back(event);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("Every action is a complete event with its times in microseconds") {
  auto const actions = events(written(example()), "X");
  REQUIRE(actions.size() == 3);
  CHECK(actions[0].at("name") == "upload parameters of stage 2");
  CHECK(actions[1].at("name") == "forward of layer 3");
  CHECK(actions[2].at("name") == "optimizer step of block 2");
  CHECK(actions[1].at("cat") == "compute");
  CHECK(actions[1].at("ts") == 250000.0);
  CHECK(actions[1].at("dur") == 250000.0);
}

TEST_CASE("Arguments hold the fields that an action has, and no others") {
  auto const actions = events(written(example()), "X");
  CHECK(actions[1].at("args") == json{{"call", 5},
                                      {"action", 17},
                                      {"slot", 4},
                                      {"stage", 2},
                                      {"round", 1},
                                      {"micro_batch", 0},
                                      {"layer", 3}});
  CHECK(actions[0].at("args") == json{{"call", 5},
                                      {"action", 9},
                                      {"slot", 4},
                                      {"stage", 2},
                                      {"round", 1},
                                      {"window", 0},
                                      {"bytes", 4096}});
  CHECK(actions[2].at("args") == json{{"call", 6}, {"action", 0}, {"block", 2}});
}

TEST_CASE("Devices and the host are named processes, lanes are named threads") {
  auto const trace = written(example());
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> threads;
  for (auto const& event : events(trace, "M")) {
    int const pid = event.at("pid");
    int const tid = event.at("tid");
    if (event.at("name") == "process_name") {
      CHECK(processes.try_emplace(pid, event.at("args").at("name")).second);
    } else if (event.at("name") == "thread_name") {
      CHECK(threads.try_emplace({pid, tid}, event.at("args").at("name")).second);
    }
  }
  CHECK(processes.size() == 2);
  std::set<int> tids;
  std::vector<std::pair<std::string, std::string>> places;
  for (auto const& event : events(trace, "X")) {
    int const pid = event.at("pid");
    int const tid = event.at("tid");
    CHECK(pid > 0);
    CHECK(tid > 0);
    CHECK(tids.insert(tid).second);  // here every action has its own lane
    places.emplace_back(processes.at(pid), threads.at({pid, tid}));
  }
  CHECK(places == std::vector<std::pair<std::string, std::string>>{{"device 1", "parameter up"},
                                                                   {"device 1", "compute"},
                                                                   {"host", "optimizer"}});
}

TEST_CASE("Every event has the fields that its phase requires") {
  auto timeline = example();
  timeline.flows = {{0, 1}};
  // Trace Event Format: all events have a name, a phase, a process and a thread. Timed events have
  // a category and a timestamp, complete events a duration, flows an id, metadata events arguments.
  std::map<std::string, std::vector<std::string>> const obligatory{
      {"M", {"args"}},
      {"X", {"cat", "ts", "dur"}},
      {"s", {"cat", "ts", "id"}},
      {"f", {"cat", "ts", "id", "bp"}},
  };
  std::set<std::string> seen;
  auto const trace = written(timeline);
  for (auto const& event : trace.at("traceEvents")) {
    std::string const phase = event.at("ph");
    seen.insert(phase);
    CHECK(event.at("name").is_string());
    CHECK(event.at("pid").is_number_integer());
    CHECK(event.at("tid").is_number_integer());
    for (auto const& field : obligatory.at(phase)) {
      CAPTURE(phase);
      CAPTURE(field);
      REQUIRE(event.contains(field));
      CHECK((field == "args"  ? event.at(field).is_object()
             : field == "cat" ? event.at(field).is_string()
             : field == "bp"  ? event.at(field) == "e"
             : field == "id"  ? event.at(field).is_number_integer()
                              : event.at(field).is_number()));
    }
    if (phase == "X") {
      CHECK(event.at("dur") >= 0.0);
    }
  }
  CHECK(seen.size() == obligatory.size());
}

TEST_CASE("A flow leads from the slice that was waited for to the slice that waited") {
  auto timeline = example();
  timeline.flows = {{0, 1}, {1, 2}};
  auto const trace = written(timeline);
  auto const slices = events(trace, "X");
  auto const starts = events(trace, "s");
  auto const ends = events(trace, "f");
  REQUIRE(starts.size() == 2);
  REQUIRE(ends.size() == 2);
  CHECK(starts[0].at("ts") == 187500.0);  // in the middle of the upload
  CHECK(ends[0].at("ts") == 250000.0);    // when the forward starts
  CHECK(starts[0].at("tid") == slices[0].at("tid"));
  CHECK(ends[0].at("tid") == slices[1].at("tid"));
  CHECK(starts[1].at("pid") == slices[1].at("pid"));
  CHECK(ends[1].at("pid") == slices[2].at("pid"));
}

TEST_CASE(
    "Read in order of time, every flow binds to the slices of its entries, and none leads "
    "backwards") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    auto const timeline = random_timeline(seed, 60);
    REQUIRE_FALSE(timeline.flows.empty());
    std::vector<json> in_time;
    auto const trace = written(timeline);
    for (auto const& event : trace.at("traceEvents")) {
      if (event.at("ph") != "M") {
        in_time.push_back(event);
      }
    }
    std::ranges::stable_sort(
        in_time, {}, [](json const& event) { return event.at("ts").get<double>(); });
    // Viewers choose, on each thread, the slice that began last and, if it has a duration, has not
    // ended.
    std::map<std::pair<int, int>, json> latest;
    std::map<std::size_t, double> began;
    std::set<std::size_t> ended;
    for (auto const& event : in_time) {
      std::pair<int, int> const place{event.at("pid"), event.at("tid")};
      if (event.at("ph") == "X") {
        latest[place] = event;
        continue;
      }
      REQUIRE(latest.contains(place));
      auto const& slice = latest.at(place);
      double const from_us = slice.at("ts");
      double const dur_us = slice.at("dur");
      double const ts = event.at("ts");
      CHECK((ts == from_us || ts < from_us + dur_us));
      std::size_t const id = event.at("id");
      auto const action = slice.at("args").at("action");
      if (event.at("ph") == "s") {
        CHECK(began.try_emplace(id, ts).second);
        CHECK(action == timeline.flows.at(id).from);
      } else {
        REQUIRE(began.contains(id));  // the start of an arrow comes before its end
        CHECK(began.at(id) <= ts);
        CHECK(ended.insert(id).second);
        CHECK(action == timeline.flows.at(id).to);
      }
    }
    CHECK(began.size() == timeline.flows.size());
    CHECK(ended.size() == timeline.flows.size());
  }
}

TEST_CASE("Clocks that differ slightly do not make arrows lead backwards") {
  auto timeline = example();
  timeline.entries[1].start_s = 0.15;  // the upload claims to last from 0.125 to 0.25
  timeline.flows = {{0, 1}};
  auto const trace = written(timeline);
  CHECK(events(trace, "s").at(0).at("ts") == events(trace, "f").at(0).at("ts"));
  CHECK(events(trace, "s").at(0).at("ts") == 150000.0);
}

TEST_CASE("Flows of unknown entries and flows back in time are refused") {
  auto timeline = example();
  timeline.flows = {{0, 3}};
  CHECK_THROWS_AS(written(timeline), Error);
  timeline.flows = {{3, 0}};
  CHECK_THROWS_AS(written(timeline), Error);
  timeline.flows = {{1, 0}};
  CHECK_THROWS_AS(written(timeline), Error);
}

TEST_CASE("Without flows, a trace has one complete event for each action, one on each line") {
  std::ostringstream out;
  Timeline timeline{2, {example().entries[1]}};
  write_chrome_trace(timeline, out);
  CHECK(out.str() ==
        R"({"displayTimeUnit":"ms","traceEvents":[
{"name":"process_name","ph":"M","pid":2,"tid":20,"args":{"name":"device 1"}},
{"name":"process_sort_index","ph":"M","pid":2,"tid":20,"args":{"sort_index":2}},
{"name":"thread_name","ph":"M","pid":2,"tid":20,"args":{"name":"compute"}},
{"name":"thread_sort_index","ph":"M","pid":2,"tid":20,"args":{"sort_index":20}},
{"name":"forward of layer 3","cat":"compute","ph":"X","ts":250000.0,"dur":250000.0,"pid":2,"tid":20,"args":{"call":5,"action":17,"slot":4,"stage":2,"round":1,"micro_batch":0,"layer":3}}
]}
)");
}

TEST_CASE("A timeline without entries is a trace without events") {
  CHECK(written({}).at("traceEvents").empty());
}

TEST_CASE("A trace file is replaced, and has the same content as a stream") {
  test::TemporaryFolder const folder;
  auto const path = folder.path / "trace.json";
  std::ofstream(path) << std::string(100000, 'x');
  write_chrome_trace(example(), path);
  std::ifstream file(path);
  CHECK(json::parse(file) == written(example()));
}

TEST_CASE("A path that cannot be written is an error that names the path") {
  test::TemporaryFolder const folder;
  auto const path = folder.path / "missing" / "trace.json";
  try {
    write_chrome_trace(example(), path);
    FAIL("no error");
  } catch (Error const& error) {
    CHECK(error.code() == std::errc::no_such_file_or_directory);
    CHECK(error.message().find(path.string()) != std::string::npos);
  }
  CHECK_THROWS_AS(write_chrome_trace(example(), folder.path), Error);
}

TEST_CASE("A failing stream is an error") {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  CHECK_THROWS_AS(write_chrome_trace(example(), out), Error);
}

TEST_CASE("A timeline with an unknown device is refused, and no file remains") {
  test::TemporaryFolder const folder;
  auto timeline = example();
  timeline.devices = 1;
  CHECK_THROWS_AS(write_chrome_trace(timeline, folder.path / "trace.json"), Error);
  CHECK(std::filesystem::is_empty(folder.path));
}

}  // namespace chrome_trace_test
