// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/bubble/cost_fit.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace cost_fit_test {

namespace {

using namespace roundpipe;

/// A timeline of compute actions without gaps.
class Measured {
 public:
  Measured& add(std::size_t layer, ActionKind kind, std::initializer_list<double> times) {
    for (auto const seconds : times) {
      TimelineEntry entry;
      entry.layer = LayerId(layer);
      entry.kind = kind;
      entry.lane = {LaneKind::compute, DeviceId(timeline_.entries.size() % 2)};
      entry.start_s = now_s_;
      entry.end_s = now_s_ += seconds;
      timeline_.entries.push_back(entry);
    }
    return *this;
  }
  [[nodiscard]] Timeline& timeline() noexcept { return timeline_; }

 private:
  Timeline timeline_{2, {}};
  double now_s_ = 0;
};

bool same(double a, double b) {
  return a == doctest::Approx(b);
}

}  // namespace

TEST_CASE("costs are medians of the measurements, and unmeasured costs stay the same") {
  std::vector<LayerCost> const known{{1, 2, 3, 4}, {5, 6}, {7, 8}};
  Measured measured;
  measured.add(0, ActionKind::forward, {2, 90, 2.5})
      .add(0, ActionKind::recompute, {3.5, 4.5})
      .add(0, ActionKind::backward, {5, 5, 5, 77})
      .add(2, ActionKind::backward, {9});
  auto const fitted = fit_costs(known, measured.timeline());
  REQUIRE(fitted.size() == 3);
  CHECK(same(fitted[0].forward_s, 2.5));
  CHECK(same(fitted[0].recompute_s.value(), 4));
  CHECK(same(fitted[0].backward_s, 5));
  CHECK(fitted[0].optimizer_s == 4);
  CHECK(fitted[1].forward_s == 5);
  CHECK(fitted[1].backward_s == 6);
  CHECK_FALSE(fitted[1].recompute_s.has_value());
  CHECK(fitted[2].forward_s == 7);
  CHECK(same(fitted[2].backward_s, 9));
}

TEST_CASE("a round's first, last and other micro-batches count with a median each") {
  Measured measured;
  for (int round = 0; round < 3; ++round) {
    auto const disturbed = round == 1 ? 50.0 : 0.0;
    measured.add(0, ActionKind::backward, {14 + disturbed, 10, 10 + disturbed, 10, 16 + disturbed});
  }
  auto timeline = measured.timeline();
  for (std::size_t i = 0; i < timeline.entries.size(); ++i) {
    timeline.entries[i].micro_batch = MicroBatchId(i % 5);
  }
  CHECK(same(fit_costs(std::vector<LayerCost>{{1, 2}}, timeline)[0].backward_s, 12));
  LayerCost with_sums{1, 2};
  with_sums.round_s = 5;
  CHECK(same(fit_costs(std::vector{with_sums}, timeline)[0].backward_s, 11));
  for (auto& entry : timeline.entries) {
    entry.micro_batch = MicroBatchId(0);  // rounds of one
  }
  CHECK(same(fit_costs(std::vector<LayerCost>{{1, 2}}, timeline)[0].backward_s, 10));
}

TEST_CASE("the saving forward of the fused stage is a forward, and recomputation scales with it") {
  std::vector<LayerCost> const known{{1, 2}, {4, 8, 6}};
  Measured measured;
  measured.add(0, ActionKind::recompute, {3}).add(1, ActionKind::recompute, {2});
  auto const fitted = fit_costs(known, measured.timeline());
  CHECK(same(fitted[0].forward_s, 3));
  CHECK(same(fitted[0].recomputing_s(), 3));
  CHECK(same(fitted[1].forward_s, 2));
  CHECK(same(fitted[1].recomputing_s(), 3));
}

TEST_CASE("recomputations without output are fitted for each save level") {
  std::vector<LayerCost> const known{{4, 8}, {4, 8}};
  Measured measured;
  measured.add(0, ActionKind::forward, {3}).add(0, ActionKind::recompute, {2, 2, 9});
  auto timeline = measured.timeline();
  for (auto& entry : timeline.entries) {
    entry.hands_on_output = entry.kind == ActionKind::forward;
    entry.save_level = entry.seconds() > 8 ? 2 : 0;
  }
  auto const fitted = fit_costs(known, timeline);
  CHECK(same(fitted[0].forward_s, 3));
  CHECK_FALSE(fitted[0].recompute_s.has_value());
  REQUIRE(fitted[0].replay_s.size() == 3);
  CHECK(same(fitted[0].replaying_s(0), 2));
  CHECK(same(fitted[0].replaying_s(1), 3));  // not seen
  CHECK(same(fitted[0].replaying_s(2), 9));
  CHECK(fitted[1].replay_s.empty());
}

TEST_CASE("recomputations that were not seen follow the measured forward") {
  LayerCost cost{4, 8};
  cost.replay_s = {3, 1};
  std::vector<LayerCost> const known{cost};
  Measured measured;
  measured.add(0, ActionKind::forward, {8});
  auto const fitted = fit_costs(known, measured.timeline());
  CHECK(same(fitted[0].replaying_s(0), 6));
  CHECK(same(fitted[0].replaying_s(1), 2));
}

TEST_CASE("two halves of a backward add up, and copies do not count as layer costs") {
  std::vector<LayerCost> const known{{1, 2}};
  Measured measured;
  measured.add(0, ActionKind::input_gradient, {2, 3, 4})
      .add(0, ActionKind::weight_gradient, {1, 1, 1})
      .add(0, ActionKind::upload_activation, {100});
  measured.timeline().entries.back().lane.kind = LaneKind::activation_up;
  measured.timeline().entries.back().layer = {};
  auto const fitted = fit_costs(known, measured.timeline());
  CHECK(fitted[0].forward_s == 1);
  CHECK(same(fitted[0].backward_s, 4));
}

TEST_CASE("a timeline of another model is refused") {
  Measured measured;
  measured.add(3, ActionKind::forward, {1});
  CHECK(test::error_of([&] {
          (void)fit_costs(std::vector<LayerCost>(3), measured.timeline());
        }).code() == Errc::invalid_argument);
}

TEST_CASE("a device's speed is what its passes take beside those of all devices") {
  Timeline timeline{3, {}, {}};
  auto const took = [&](std::size_t device, std::size_t layer, ActionKind kind, double seconds) {
    TimelineEntry entry;
    entry.layer = LayerId(layer);
    entry.kind = kind;
    entry.lane = {LaneKind::compute, DeviceId(device)};
    entry.end_s = seconds;
    timeline.entries.push_back(entry);
  };
  for (int i = 0; i < 3; ++i) {
    took(0, 0, ActionKind::forward, 8);
    took(1, 0, ActionKind::forward, 12);
    took(0, 0, ActionKind::backward, 22);
    took(1, 0, ActionKind::backward, 18);
  }
  took(0, 0, ActionKind::forward, 900);  // medians: a disturbance does not count
  took(1, 0, ActionKind::forward, 12);
  took(1, 1, ActionKind::forward, 50);  // on no other device, and so as usual
  auto& copy = timeline.entries.emplace_back(timeline.entries.front());
  copy.lane = {LaneKind::save_up, DeviceId(2)};
  auto const speeds = fit_device_speeds(timeline);
  REQUIRE(speeds.size() == 3);
  CHECK(same(speeds[0], (4 * 12 + 3 * 20.0) / (4 * 8 + 3 * 22)));
  CHECK(same(speeds[1], (4 * 12 + 3 * 20.0 + 50) / (4 * 12 + 3 * 18 + 50)));
  CHECK(speeds[2] == 1);
}

TEST_CASE("the steps of a block have a median, and blocks without steps take no time") {
  Timeline timeline;
  for (auto const& [block, seconds] : {std::pair(1, 3.0), {1, 5.0}, {1, 100.0}, {0, 2.0}}) {
    TimelineEntry entry;
    entry.kind = ActionKind::optimizer_step;
    entry.lane = {LaneKind::optimizer, DeviceId::none()};
    entry.block = BlockId(block);
    entry.end_s = seconds;
    timeline.entries.push_back(entry);
  }
  CHECK(fit_step_seconds(3, timeline) == std::vector<double>{2, 5, 0});
  CHECK(test::error_of([&] { (void)fit_step_seconds(1, timeline); }).code() ==
        Errc::invalid_argument);
}

}  // namespace cost_fit_test
