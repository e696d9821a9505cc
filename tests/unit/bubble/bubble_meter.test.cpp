// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/bubble/bubble_meter.hpp>

#include <support/hand_made_graph.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace bubble_meter_test {

namespace {

using namespace roundpipe;
using test::add_ring;
using test::graph_of;
using test::Made;
using External = BubbleMeter::External;

Made compute(std::size_t device = 0) {
  return {ActionKind::forward, LaneKind::compute, device};
}
Made upload(std::size_t device = 0) {
  return {ActionKind::upload_activation, LaneKind::activation_up, device};
}
Made sum() {
  return {ActionKind::accumulate_gradient, LaneKind::accumulate};
}
Buffer place(std::size_t sequence) {
  return {{BufferKind::activations_in, DeviceId(0), 0}, sequence};
}

/// The start and end of an action.
struct Time {
  double start_s = 0;
  double end_s = 0;
};

/// The timeline entries of a run of \p graph at \p times.
std::vector<TimelineEntry> entries_of(ActionGraph const& graph, std::vector<Time> const& times) {
  REQUIRE(graph.actions.size() == times.size());
  std::vector<TimelineEntry> entries(times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    entries[i].id = ActionId(i);
    entries[i].kind = graph.actions[i].kind;
    entries[i].lane = graph.actions[i].lane;
    entries[i].start_s = times[i].start_s;
    entries[i].end_s = times[i].end_s;
  }
  return entries;
}

/// Waits for earlier graphs, by action; the other actions have none.
using Externals = std::map<std::size_t, External>;

auto lookup(Externals externals) {
  return [externals = std::move(externals)](ActionId id) {
    auto const found = externals.find(id.index());
    return found == externals.end() ? External::none : found->second;
  };
}

Bubbles measure(ActionGraph const& graph,
                std::vector<Time> const& times,
                Externals externals = {},
                std::size_t devices = 2) {
  BubbleMeter meter(devices);
  meter.add(graph, entries_of(graph, times), lookup(std::move(externals)));
  return meter.bubbles();
}

/// Exactly \p causes, each with its seconds.
Bubbles only(std::initializer_list<std::pair<BubbleCause, double>> causes) {
  Bubbles bubbles;
  for (auto const& [cause, seconds] : causes) {
    bubbles[cause] = seconds;
  }
  return bubbles;
}

}  // namespace

TEST_CASE("a device that computes all the time has no bubbles") {
  auto const graph = graph_of({compute(), compute(), compute()});
  CHECK(measure(graph, {{0, 1}, {1, 2}, {2, 5}}) == Bubbles{});
}

TEST_CASE("time before a device's very first action is not a bubble") {
  auto const graph = graph_of({upload(), compute().after({0})});
  CHECK(measure(graph, {{0, 7}, {7, 8}}) == Bubbles{});
}

TEST_CASE("a copy in flight is a transfer stall") {
  auto const graph = graph_of({compute(), upload(), compute().after({1})});
  CHECK(measure(graph, {{0, 1}, {0, 4}, {4, 5}}) == only({{BubbleCause::transfer_stall, 3}}));
}

TEST_CASE("only the part of a copy during which the device is idle counts") {
  auto const graph = graph_of({compute(), upload(), compute().after({1}), compute()});
  CHECK(measure(graph, {{0, 3}, {1, 4}, {4, 5}, {5, 6}}) ==
        only({{BubbleCause::transfer_stall, 1}}));
}

TEST_CASE("consecutive copies are transfer stalls, whichever ring entries they fill") {
  for (std::size_t const count : {2, 3}) {
    auto graph = graph_of({compute(),
                           upload().writes(place(0)),
                           upload().writes(place(1)),
                           compute().after({2}).reads(place(1))});
    add_ring(graph, place(0).ring, count, {{ActionId(1)}, {ActionId(2), ActionId(3)}});
    CHECK(measure(graph, {{0, 1}, {0, 3}, {3, 6}, {6, 7}}) ==
          only({{BubbleCause::transfer_stall, 5}}));
  }
}

TEST_CASE("a copy that waited for its ring entry is a memory stall") {
  auto graph = graph_of({upload().writes(place(0)),
                         compute().after({0}).reads(place(0)),
                         upload().writes(place(1)).after({1}),
                         compute().after({2}).reads(place(1))});
  add_ring(graph, place(0).ring, 1, {{ActionId(0), ActionId(1)}, {ActionId(2), ActionId(3)}});
  CHECK(measure(graph, {{0, 1}, {1, 3}, {3, 5}, {5, 6}}) == only({{BubbleCause::memory_stall, 2}}));

  SUBCASE("in a ring of two, the entry before the last one counts") {
    graph.rings.at(place(0).ring).count = 2;  // the wait has another cause
    CHECK(measure(graph, {{0, 1}, {1, 3}, {3, 5}, {5, 6}}) ==
          only({{BubbleCause::transfer_stall, 2}}));
  }
}

TEST_CASE("a copy behind another copy is a transfer stall, even if its entry became free late") {
  auto graph = graph_of({upload().writes(place(0)),
                         compute().after({0}).reads(place(0)),
                         Made(ActionKind::upload_parameters, LaneKind::parameter_up, 0),
                         upload().writes(place(1)).after({1, 2}),
                         compute().after({3}).reads(place(1))});
  add_ring(graph, place(0).ring, 1, {{ActionId(0), ActionId(1)}, {ActionId(3), ActionId(4)}});
  CHECK(measure(graph, {{0, 1}, {1, 3}, {0, 4}, {4, 6}, {6, 7}}) ==
        only({{BubbleCause::transfer_stall, 3}}));
}

TEST_CASE("compute of other devices is fill before the first action of a call, then imbalance") {
  auto const graph =
      graph_of({compute(1), compute(0).after({0}), compute(1), compute(0).after({2})});
  std::vector<Time> const first{{0, 1}, {1, 2}, {1, 5}, {5, 6}};
  CHECK(measure(graph, first) == only({{BubbleCause::imbalance, 3}}));

  BubbleMeter meter(2);
  meter.add(graph, entries_of(graph, first), lookup({}));
  // Device 1 begins the next call as soon as it is free, at 5; device 0 waits for device 1.
  meter.add(graph, entries_of(graph, {{5, 9}, {9, 10}, {9, 11}, {11, 12}}), lookup({}));
  CHECK(meter.bubbles() == only({{BubbleCause::imbalance, 3 + 1}, {BubbleCause::fill, 3}}));
}

TEST_CASE("a copy between two devices is a transfer stall, the compute before the copy imbalance") {
  auto const graph =
      graph_of({compute(0),
                compute(1),
                Made(ActionKind::download_activation, LaneKind::activation_down, 1).after({1}),
                upload(0).after({2}),
                compute(0).after({3})});
  CHECK(measure(graph, {{0, 1}, {0, 3}, {3, 5}, {5, 9}, {9, 10}}) ==
        only({{BubbleCause::imbalance, 2}, {BubbleCause::transfer_stall, 6}}));
}

TEST_CASE("work of the host is an optimizer stall") {
  auto const graph = graph_of({compute(), sum(), upload().after({1}), compute().after({2})});
  CHECK(measure(graph, {{0, 1}, {0, 4}, {4, 6}, {6, 7}}) ==
        only({{BubbleCause::optimizer_stall, 3}, {BubbleCause::transfer_stall, 2}}));
}

TEST_CASE(
    "waits of earlier graphs are optimizer stalls when the host causes them, otherwise memory "
    "stalls") {
  auto const graph = graph_of({compute(), upload(), compute().after({1})});
  std::vector<Time> const times{{0, 1}, {4, 6}, {6, 7}};
  CHECK(measure(graph, times, {{1, External::host}}) ==
        only({{BubbleCause::optimizer_stall, 3}, {BubbleCause::transfer_stall, 2}}));
  CHECK(measure(graph, times, {{1, External::device}}) ==
        only({{BubbleCause::memory_stall, 3}, {BubbleCause::transfer_stall, 2}}));
}

TEST_CASE("work that waited for nothing was issued late: dispatch") {
  auto const graph = graph_of({compute(), compute()});
  CHECK(measure(graph, {{0, 1}, {3, 4}}) == only({{BubbleCause::dispatch, 2}}));
}

TEST_CASE("the time between the end of a copy and the next compute is dispatch") {
  auto const graph = graph_of({compute(), upload(), compute().after({1})});
  CHECK(measure(graph, {{0, 1}, {0, 2}, {5, 6}}) ==
        only({{BubbleCause::transfer_stall, 1}, {BubbleCause::dispatch, 3}}));
}

TEST_CASE("between two calls, time without waits is drain") {
  auto const graph = graph_of({upload(), compute().after({0}), compute()});
  BubbleMeter meter(2);
  meter.add(graph, entries_of(graph, {{0, 1}, {1, 2}, {2, 3}}), lookup({}));
  CHECK(meter.bubbles() == Bubbles{});
  meter.add(graph, entries_of(graph, {{7, 8}, {8, 9}, {9, 10}}), lookup({}));
  CHECK(meter.bubbles() == only({{BubbleCause::drain, 4}, {BubbleCause::transfer_stall, 1}}));
}

TEST_CASE("idle time is summed over devices") {
  auto const graph = graph_of({compute(0), compute(1), compute(0), compute(1)});
  CHECK(measure(graph, {{0, 1}, {0, 2}, {3, 4}, {7, 8}}) == only({{BubbleCause::dispatch, 2 + 5}}));
}

TEST_CASE("the causes add up to the idle time, for random graphs and times") {
  std::mt19937 random(20260101);
  auto const draw = [&](std::size_t below) {
    return std::uniform_int_distribution<std::size_t>(0, below - 1)(random);
  };
  constexpr std::size_t devices = 3;
  for (int round = 0; round < 2000; ++round) {
    BubbleMeter meter(devices);
    std::map<Lane, double> free_s;
    std::vector<double> idle_s(devices);
    std::vector<bool> began(devices, false);
    for (std::size_t call = 0; call < 3; ++call) {
      ActionGraph graph;
      graph.devices = devices;
      std::vector<Time> times;
      Externals externals;
      for (std::size_t i = 0; i < 1 + draw(12); ++i) {
        auto const kind = draw(6);
        auto made = kind == 5 ? sum() : kind >= 3 ? upload(draw(devices)) : compute(draw(devices));
        auto start_s = free_s[made.action.lane];
        for (std::size_t waits = draw(3); waits > 0 && i > 0; --waits) {
          auto const on = draw(i);
          made.after({on});
          start_s = std::max(start_s, times[on].end_s);
        }
        start_s += static_cast<double>(draw(2) * draw(4));
        auto const end_s = start_s + static_cast<double>(draw(5));
        if (draw(4) == 0) {
          externals[i] = draw(2) == 0 ? External::host : External::device;
        }
        auto const& lane = made.action.lane;
        if (lane.kind == LaneKind::compute) {
          auto const device = lane.device.index();
          idle_s[device] += began[device] ? start_s - free_s[lane] : 0;
          began[device] = true;
        }
        free_s[lane] = end_s;
        times.push_back({start_s, end_s});
        graph.actions.push_back(made.action);
      }
      meter.add(graph, entries_of(graph, times), lookup(std::move(externals)));
    }
    double expected = 0;
    for (auto const seconds : idle_s) {
      expected += seconds;
    }
    REQUIRE(meter.bubbles().total() == expected);  // whole seconds: exact
  }
}

}  // namespace bubble_meter_test
