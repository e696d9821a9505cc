// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Tasks, slots and timelines are ranges and compose with range-v3.
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/slot_order.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <support/simulated_schedules.hpp>

#include <doctest/doctest.h>
#include <range/v3/algorithm/max.hpp>
#include <range/v3/numeric/accumulate.hpp>
#include <range/v3/range/concepts.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/chunk_by.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/join.hpp>
#include <range/v3/view/stride.hpp>
#include <range/v3/view/take.hpp>
#include <range/v3/view/transform.hpp>

#include <cstddef>
#include <tuple>
#include <vector>

namespace range_views_test {

using namespace roundpipe;
namespace views = ranges::views;

static_assert(ranges::random_access_range<DeviceTasks>);
static_assert(ranges::random_access_range<decltype(order_slots({}, {}))>);
static_assert(ranges::random_access_range<Timeline const>);
static_assert(ranges::common_range<Timeline const>);

constexpr std::size_t devices = 3;
constexpr std::size_t micro_batches = 2;
Partition const partition{{{0, 2}, {2, 2}}, {{4, 1}, {2, 2}, {0, 2}}};  // 5 slots

ScheduleShape shape() {
  return test::shape_of(partition, devices, micro_batches);
}

Timeline timeline() {
  auto const graph = test::ScheduledModel(5).streamed(RoundRobinSchedule{}, partition, shape());
  SimulationOptions options;
  options.compute.layers.assign(5, {1, 2});
  GraphSequence sequence(devices);
  return simulate(sequence.add(graph), options).timeline;
}

TEST_CASE("tasks by device can be joined, filtered and counted") {
  auto const tasks = RoundRobinSchedule{}.tasks(shape());
  auto is_fused = [](Task const& task) { return task.kind == TaskKind::fused; };
  auto const fused = tasks | views::join | views::filter(is_fused) |
                     views::transform(&Task::micro_batch) | ranges::to<std::vector>();
  CHECK(fused == std::vector{MicroBatchId(0), MicroBatchId(1)});
  for (auto const& [device, list] : tasks | views::enumerate) {
    for (auto const& task : list) {
      CHECK(task.stage.index() % devices == device);
    }
  }
}

TEST_CASE("slots can be strided and grouped") {
  auto const slots = order_slots(shape(), RoundRobinSchedule{}.tasks(shape()));
  auto const first_device =
      slots | views::stride(devices) | views::transform(&Slot::stage) | ranges::to<std::vector>();
  CHECK(first_device == std::vector{StageId(0), StageId(3)});
  auto index = [](Slot const& slot) { return slot.stage.index(); };
  CHECK(ranges::max(slots | views::take(3) | views::transform(index)) == 2);
}

TEST_CASE("a timeline can be filtered by lane and summed") {
  auto const all = timeline();
  auto is_compute = [](TimelineEntry const& entry) { return entry.lane.kind == LaneKind::compute; };
  auto const busy_s = ranges::accumulate(
      all | views::filter(is_compute) | views::transform(&TimelineEntry::seconds), 0.0);
  // Forward, recompute and backward of four layers; forward and backward of the fused layer.
  CHECK(busy_s == doctest::Approx(micro_batches * (4 * (1 + 1 + 2) + 1 + 2)));
  auto same_slot = [](TimelineEntry const& a, TimelineEntry const& b) { return a.slot == b.slot; };
  std::size_t slots = 0;
  auto const compute = all | views::filter(is_compute) | ranges::to<std::vector>();
  for (auto&& slot : compute | views::chunk_by(same_slot)) {
    auto lane = [](TimelineEntry const& entry) { return entry.lane; };
    auto const lanes = slot | views::transform(lane) | ranges::to<std::vector>();
    CHECK(lanes == std::vector(lanes.size(), lanes.front()));
    ++slots;
  }
  CHECK(slots >= partition.size());
}

}  // namespace range_views_test
