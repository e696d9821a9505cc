// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <support/own_policies.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/sliding.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace pipeline_timeline_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

// Slow enough that a busy machine, which wakes threads some milliseconds late, moves nothing.
constexpr double rate = 1e6;  // bytes a second: an activation takes about 32 ms, a chunk 4 ms

constexpr std::size_t micro_batches = 4;

/// The measured timeline of one call on two devices; delays slow their compute.
Timeline measure() {
  auto options = host_devices(2);
  options.link = {rate, rate, 0};
  options.delay = [](DeviceId, LaneKind lane) {
    return std::chrono::milliseconds(lane == LaneKind::compute ? 80 : 0);
  };
  HostBackend backend{options};
  PipelineOptions pipeline_options;
  pipeline_options.capacity = {16, 8};
  pipeline_options.micro_batches_per_round = micro_batches;
  pipeline_options.timeline_calls = 8;
  ToyTypes const types{.width = 64};
  ToyData const data(micro_batches, {16, 8}, 1);
  Pipeline pipeline{toy_model({.types = types, .dense = 2}),
                    Sgd{},
                    backend,
                    pipeline_options,
                    Policies{.partitioner = OneLayerStages{}}};
  pipeline.forward_backward(data.batch());
  pipeline.synchronize();
  auto timeline = pipeline.timeline();
  std::erase_if(timeline.entries, [](auto const& entry) { return entry.graph != 0; });
  return timeline;
}

Timeline const& planned() {
  static auto const timeline = measure();
  return timeline;
}

/// How many activation copies passed a parameter or gradient chunk that was waiting for the copy
/// engine.
std::size_t count_overtaken(Timeline const& timeline) {
  constexpr double tolerance_s = 12e-3;
  std::size_t overtaken = 0;
  for (auto const& copy : timeline) {
    auto const up = copy.lane.kind == LaneKind::activation_up;
    if (!up && copy.lane.kind != LaneKind::activation_down) {
      continue;
    }
    auto const copy_begins_s = copy.end_s - static_cast<double>(copy.bytes) / rate;
    for (auto const& chunk : timeline) {
      auto const chunk_begins_s = chunk.end_s - static_cast<double>(chunk.bytes) / rate;
      overtaken +=
          chunk.lane.device == copy.lane.device &&
                  chunk.lane.kind == (up ? LaneKind::parameter_up : LaneKind::gradient_down) &&
                  chunk.start_s + tolerance_s < copy.start_s &&   // the chunk was ready first,
                  chunk_begins_s + tolerance_s > copy.start_s &&  // but not in flight,
                  chunk.end_s > copy.start_s &&                   // nor over,
                  chunk_begins_s < copy_begins_s                  // and still went first
              ? 1
              : 0;
    }
  }
  return overtaken;
}

/// From the first start to the last end of the entries that satisfy \p f.
template <class F>
std::optional<std::pair<double, double>> span_of(Timeline const& timeline, F&& f) {
  std::optional<std::pair<double, double>> span;
  for (auto const& entry : timeline | ranges::views::filter(f)) {
    span =
        span ? std::pair{std::min(span->first, entry.start_s), std::max(span->second, entry.end_s)}
             : std::pair{entry.start_s, entry.end_s};
  }
  return span;
}

}  // namespace

TEST_CASE("in the measured timeline, activations go up one micro-batch early and down one late") {
  auto const of = [&](SlotId slot, std::size_t m, LaneKind lane) {
    return span_of(planned(), [=](TimelineEntry const& entry) {
      return entry.slot == slot && entry.micro_batch == MicroBatchId(m) && entry.lane.kind == lane;
    });
  };
  // The first slot waits for no other device, so only the plan places its copies.
  SlotId const slot(0);
  for (std::size_t m = 1; m < micro_batches; ++m) {
    auto const up = of(slot, m, LaneKind::activation_up).value();
    auto const before = of(slot, m - 1, LaneKind::compute).value();
    CHECK(up.second <= before.second);  // it went up during the compute of the previous one
    if (m >= 2) {                       // and not earlier
      CHECK(up.first >= of(slot, m - 2, LaneKind::compute).value().second);
    }
    auto const down = of(slot, m - 1, LaneKind::activation_down).value();
    auto const here = of(slot, m, LaneKind::compute).value();
    CHECK(down.first >= before.second);
    CHECK(down.second <= here.second);  // it came down during the compute of the next one
  }
}

TEST_CASE("in the measured timeline, no parameter chunk is queued ahead of an activation copy") {
  CHECK(count_overtaken(planned()) == 0);

  // The count can find violations: a chunk that became ready during one activation copy and went
  // before the next.
  auto const entry = [](LaneKind lane, double start_s, double end_s) {
    TimelineEntry e;
    e.lane = {lane, DeviceId(0)};
    e.bytes = static_cast<Bytes>(32e-3 * rate);
    e.start_s = start_s;
    e.end_s = end_s;
    return e;
  };
  Timeline const bad{1,
                     {entry(LaneKind::activation_up, 0, 32e-3),
                      entry(LaneKind::parameter_up, 4e-3, 64e-3),
                      entry(LaneKind::activation_up, 32e-3, 96e-3)}};
  CHECK(count_overtaken(bad) == 1);
}

TEST_CASE("in the measured timeline, the actions of a lane follow each other") {
  std::map<Lane, std::vector<TimelineEntry>> lanes;
  for (auto const& entry : planned()) {
    lanes[entry.lane].push_back(entry);
  }
  // Nothing is offloaded, or sent to another device.
  CHECK(lanes.size() == 2 * (device_lane_count - 3));
  for (auto& [lane, entries] : lanes) {
    for (auto&& pair : entries | ranges::views::sliding(2)) {
      CHECK(pair[0].id < pair[1].id);
      CHECK(pair[0].end_s <= pair[1].start_s);
    }
  }
}

TEST_CASE("runs are reported in order, however many are in flight") {
  for (std::size_t calls = 1; calls <= 5; ++calls) {
    HostBackend backend{host_devices(2)};
    PipelineOptions options;
    options.capacity = {2, 3};
    options.micro_batches_per_round = 2;
    options.timeline_calls = 2 * calls;
    ToyData const data(2, {2, 3}, 1);
    Pipeline pipeline{toy_model({.dense = 2}), Sgd{}, backend, options};
    for (std::size_t i = 0; i < calls; ++i) {
      pipeline.forward_backward(data.batch());
      pipeline.step();
    }
    auto const report = pipeline.report();
    for (auto const share : report.device_busy) {
      CHECK(share <= 1);
    }
    auto const timeline = pipeline.timeline();
    CHECK(std::ranges::is_sorted(timeline, {}, &TimelineEntry::graph));
    CHECK(timeline.entries.back().graph + 1 == 2 * calls);
  }
}

}  // namespace pipeline_timeline_test
