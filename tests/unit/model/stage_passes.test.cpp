// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/model/stage_passes.hpp>

#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/model/pass_costs.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace stage_passes_test {

namespace {

using namespace roundpipe;

/// The compared parts of a pass.
std::vector<std::pair<PassKind, std::size_t>> order_of(std::vector<Pass> const& passes) {
  std::vector<std::pair<PassKind, std::size_t>> order;
  for (auto const& pass : passes) {
    order.emplace_back(pass.kind, pass.layer);
  }
  return order;
}

/// The passes of one layer among the passes of a stage.
std::vector<Pass> of_layer(std::span<Pass const> passes, std::size_t layer) {
  std::vector<Pass> result;
  for (auto const& pass : passes) {
    if (pass.layer == layer) {
      result.push_back(pass);
    }
  }
  return result;
}

StageTime time_of(std::span<Pass const> passes, std::span<LayerCost const> costs) {
  StageTime time;
  for (auto const& pass : passes) {
    time.add(pass, seconds_of(pass.kind, costs[pass.layer]));
  }
  return time;
}

PassBytes sum_of(std::span<Pass const> passes, std::span<LayerBytes const> layers) {
  PassBytes sum;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    sum += bytes_of(of_layer(passes, layer), layers[layer]);
  }
  return sum;
}

std::vector<LayerCost> const costs{{1, 10, 2.0}, {3, 20, 5.0}, {7, 30}};
std::vector<LayerBytes> const layers{
    {256, 512, 1024, 2048, 0}, {512, 1024, 1024, 4096, 0}, {768, 1536, 0, 8192, 0}};

static_assert(!runs_backward(StageKind::forward) && !runs_backward(StageKind::evaluate));
static_assert(runs_backward(StageKind::fused) && runs_backward(StageKind::backward));

}  // namespace

TEST_CASE("a stage runs forward in layer order, then backward from its last layer on") {
  using enum PassKind;
  using Order = std::vector<std::pair<PassKind, std::size_t>>;
  LayerRange const range{3, 2};
  CHECK(order_of(Stage{StageKind::forward, range}.passes()) == Order{{forward, 3}, {forward, 4}});
  CHECK(order_of(Stage{StageKind::evaluate, range}.passes()) == Order{{forward, 3}, {forward, 4}});
  CHECK(order_of(Stage{StageKind::fused, range}.passes()) ==
        Order{{forward, 3}, {forward, 4}, {backward, 4}, {backward, 3}});
  CHECK(order_of(Stage{StageKind::backward, range}.passes()) ==
        Order{{recompute, 3}, {recompute, 4}, {backward, 4}, {backward, 3}});
  CHECK(Stage{StageKind::backward, {3, 0}}.passes().empty());
}

TEST_CASE("where every boundary is a checkpoint, a layer is recomputed just before its backward") {
  using enum PassKind;
  using Order = std::vector<std::pair<PassKind, std::size_t>>;
  WorkingSet set({{0}, {0, 256}, {0, 256, 512}, {0, 256}}, 3);
  set.set_level(1, 1, 1);
  set.set_level(2, 1, 1);
  set.set_level(2, 2, 2);
  auto const passes = [&](std::size_t m) {
    return passes_over(StageKind::backward, {0, 4}, set, m);
  };
  CHECK(order_of(passes(0)) == Order{{recompute, 3},
                                     {backward, 3},
                                     {recompute, 2},
                                     {backward, 2},
                                     {recompute, 1},
                                     {backward, 1},
                                     {backward, 0}});  // layer 0 saves nothing
  CHECK(order_of(passes(1)) == Order{{recompute, 3},
                                     {backward, 3},
                                     {recompute, 2},
                                     {backward, 2},
                                     {backward, 1},
                                     {backward, 0}});
  CHECK(order_of(passes(2)) == Order{{recompute, 3},
                                     {backward, 3},
                                     {backward, 2},
                                     {recompute, 1},
                                     {backward, 1},
                                     {backward, 0}});
  for (std::size_t m = 0; m < 3; ++m) {
    for (auto const& pass : passes(m)) {
      CHECK(pass.level == set.level(pass.layer, m));
      CHECK(pass.reads.has(PassData::kept) == (pass.level > 0));
      CHECK(pass.reads.has(PassData::checkpoint));
      CHECK_FALSE(pass.hands_on_output());
      CHECK(pass.reads.has(PassData::activations) ==
            (pass.kind == backward && set.recomputes(pass.layer, m)));
    }
    for (auto const& pass : passes_over(StageKind::forward, {0, 4}, set, m)) {
      CHECK(pass.writes.has(PassData::kept) == (set.level(pass.layer, m) > 0));
      CHECK(pass.hands_on_output());
    }
    CHECK(passes_over(StageKind::fused, {2, 2}, set, m) ==
          Stage{StageKind::fused, {2, 2}}.passes());
  }
  // What comes behind a backward waits, too.
  auto const time = time_of(passes_over(StageKind::backward, {1, 2}, set, 0), costs);
  CHECK(time.early_s == 7);  // the recomputation of layer 2
  CHECK(time.late_s == 30 + 5 + 20);
}

TEST_CASE("a recomputation makes what the stage's next layer reads, and no other output") {
  for (auto const kind : {StageKind::forward, StageKind::fused, StageKind::evaluate}) {
    for (auto const& pass : Stage{kind, {2, 3}}.passes()) {
      CHECK((pass.runs_backward() || pass.hands_on_output()));
    }
  }
  for (auto const& pass : Stage{StageKind::backward, {2, 3}}.passes()) {
    CHECK(pass.hands_on_output() == (pass.kind == PassKind::recompute && pass.layer < 4));
  }
}

TEST_CASE("the halves of a backward together read, write and take as much as the whole") {
  std::vector<Pass> const whole{backward_pass};
  std::vector<Pass> const halves{input_gradient_pass, weight_gradient_pass};
  for (auto const datum : {PassData::activations, PassData::output_gradient}) {
    CHECK(reads(halves, datum) == reads(whole, datum));
  }
  for (auto const datum : {PassData::input_gradient, PassData::parameter_gradient}) {
    CHECK(writes(halves, datum) == writes(whole, datum));
  }
  CHECK(seconds_of(halves, costs[1]) == seconds_of(whole, costs[1]));
}

TEST_CASE("recomputation is early, because it starts from a checkpoint; all other passes wait") {
  auto const time = [](StageKind kind) { return time_of(Stage{kind, {0, 3}}.passes(), costs); };
  CHECK(time(StageKind::forward).early_s == 0);
  CHECK(time(StageKind::forward).late_s == 11);
  CHECK(time(StageKind::fused).early_s == 0);
  CHECK(time(StageKind::fused).late_s == 71);
  CHECK(time(StageKind::backward).early_s == 14);
  CHECK(time(StageKind::backward).late_s == 60);
}

TEST_CASE("a stage with a backward holds gradients, activations and boundaries until its end") {
  auto const bytes = [](StageKind kind) { return sum_of(Stage{kind, {0, 3}}.passes(), layers); };
  CHECK(bytes(StageKind::forward) == PassBytes{1536, 0, 0});
  CHECK(bytes(StageKind::evaluate) == PassBytes{1536, 0, 0});
  CHECK(bytes(StageKind::backward) == PassBytes{1536, 3072, 14336 + 2048});
  CHECK(bytes(StageKind::fused) == bytes(StageKind::backward));
}

TEST_CASE("a device that is free early recomputes until its input arrives") {
  StageTime const time{2, 5};
  auto const waits = run_stage(time, 1, 10);
  CHECK(waits.ready_s == 3);
  CHECK(waits.start_s == 10);
  CHECK(waits.end_s == 15);
  CHECK(run_stage(time, 10, 1).end_s == 17);
}

TEST_CASE("a backward stage is fused when no forward stage has run its layers") {
  Partition const streamed{{{0, 2}, {2, 1}}, {{3, 2}, {0, 3}}};
  CHECK(has_fused_stage(streamed));
  CHECK(stages_of(streamed) == std::vector<Stage>{{StageKind::forward, {0, 2}},
                                                  {StageKind::forward, {2, 1}},
                                                  {StageKind::fused, {3, 2}},
                                                  {StageKind::backward, {0, 3}}});
  Partition const bound{{{0, 3}, {3, 2}, {5, 0}}, {{5, 0}, {3, 2}, {0, 3}}};
  CHECK_FALSE(has_fused_stage(bound));
  CHECK(stages_of(bound)[3] == Stage{StageKind::backward, {5, 0}});
  CHECK_FALSE(has_fused_stage({{{0, 3}}, {}}));

  CHECK(stage_kind(StageDirection::forward, {0, 5}, 5) == StageKind::forward);
  CHECK(stage_kind(StageDirection::backward, {3, 2}, 5) == StageKind::fused);
  CHECK(stage_kind(StageDirection::backward, {2, 2}, 5) == StageKind::backward);

  ScheduleShape shape;
  shape.forward_stages = 2;
  shape.backward_stages = 2;
  std::vector<StageKind> kinds;
  for (auto const is_fused : {true, false}) {
    shape.fused = is_fused;
    for (std::size_t stage = 0; stage < shape.stages(); ++stage) {
      kinds.push_back(stage_kind(shape, StageId(stage)));
    }
  }
  using enum StageKind;
  CHECK(kinds ==
        std::vector{
            forward, forward, StageKind::fused, backward, forward, forward, backward, backward});
}

TEST_CASE("a layer that keeps its forward gives its stage other passes: times and bytes follow") {
  // Of three layers, the forward stage keeps the saved bytes and the boundary of the middle one.
  auto const range = LayerRange{0, 3};
  auto forward = Stage{StageKind::forward, range}.passes();
  forward[1].saves = {PassData::activations, PassData::output};
  // The backward stage does not recompute that layer; its backward reads the kept data.
  std::vector<Pass> backward;
  for (auto pass : Stage{StageKind::backward, range}.passes()) {
    if (pass.layer == 1 && pass.kind == PassKind::recompute) {
      continue;
    }
    if (pass.layer == 1) {
      pass.reads = {PassData::activations, PassData::output, PassData::output_gradient};
    }
    backward.push_back(pass);
  }

  CHECK(time_of(forward, costs).seconds() == 11);  // unchanged
  CHECK(time_of(backward, costs).early_s == 14 - 5);
  CHECK(time_of(backward, costs).late_s == 60);
  auto const kept = Bytes{4096 + 1024};
  CHECK(sum_of(forward, layers) == PassBytes{1536, 0, kept});
  CHECK(sum_of(backward, layers) == PassBytes{1536, 3072, 14336 + 2048});  // unchanged
}

}  // namespace stage_passes_test
