// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/core/error.hpp>
#include <roundpipe/trace/chrome_trace.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace roundpipe;
using nlohmann::json;

/// One micro-batch of layer 3 on device 1, its parameters, and an optimizer step.
Timeline example() {
  TimelineEntry forward;
  forward.call = 5;
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
  step.call = 6;
  step.id = ActionId(0);
  step.kind = ActionKind::optimizer_step;
  step.lane = {LaneKind::optimizer, DeviceId::none()};
  step.block = BlockId(2);
  step.start_s = 0.75;
  step.end_s = 1;
  return {2, {upload, forward, step}};
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

TEST_CASE("Arguments hold what an action has, and nothing else") {
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
    CHECK(tids.insert(tid).second);  // here every action has a lane of its own
    places.emplace_back(processes.at(pid), threads.at({pid, tid}));
  }
  CHECK(places == std::vector<std::pair<std::string, std::string>>{{"device 1", "parameter up"},
                                                                   {"device 1", "compute"},
                                                                   {"host", "optimizer"}});
}

TEST_CASE("A timeline without entries is a trace without events") {
  CHECK(written({}).at("traceEvents").empty());
}

TEST_CASE("A trace file is replaced, and equals what a stream gets") {
  test::TemporaryFolder const folder;
  auto const path = folder.path / "trace.json";
  std::ofstream(path) << std::string(100000, 'x');
  write_chrome_trace(example(), path);
  std::ifstream file(path);
  CHECK(json::parse(file) == written(example()));
}

TEST_CASE("A path that can not be written is an error that names it") {
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

TEST_CASE("A stream that fails is an error") {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  CHECK_THROWS_AS(write_chrome_trace(example(), out), Error);
}

TEST_CASE("A trace of a timeline with an unknown device is refused, and leaves no file") {
  test::TemporaryFolder const folder;
  auto timeline = example();
  timeline.devices = 1;
  CHECK_THROWS_AS(write_chrome_trace(timeline, folder.path / "trace.json"), Error);
  CHECK(std::filesystem::is_empty(folder.path));
}
