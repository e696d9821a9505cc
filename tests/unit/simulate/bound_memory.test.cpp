// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/bound_memory.hpp>

#include <roundpipe/partition/balanced_partition.hpp>
#include <roundpipe/schedule/gpipe_schedule.hpp>
#include <roundpipe/schedule/one_f_one_b_schedule.hpp>
#include <roundpipe/simulate/simulator.hpp>
#include <support/error_of.hpp>
#include <support/simulated_schedules.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace bound_memory_test {

using namespace roundpipe;

constexpr std::size_t layers = 8;
std::vector<LayerCost> const costs(layers, LayerCost{1, 2});
std::vector<LayerBytes> const bytes(layers, LayerBytes{1000, 100, 10, 3, 7});

template <Schedule S>
std::vector<DeviceUse> held_by(S const& schedule, std::vector<LayerBytes> const& of_layers) {
  auto const partition = balanced_partition({.costs = costs}, 4, fuses(schedule));
  test::ScheduledModel const model(layers);
  auto const graph = model.bound(schedule, partition, test::shape_of(partition, 4, 6));
  SimulationOptions options;
  options.compute.layers = costs;
  GraphSequence sequence(4);
  return bound_device_bytes(simulate(sequence.add(graph), options), of_layers);
}

TEST_CASE(
    "devices hold weights and gradients of their layers, and the saved bytes of one micro-batch") {
  auto const held = held_by(GPipeSchedule{}, bytes);
  REQUIRE(held.size() == 4);
  for (auto const& device : held) {  // two layers on each
    CHECK(device.parameters == 2000);
    CHECK(device.gradients == 200);
    CHECK(device.workspace == 7 + 2 * 10);
    CHECK(device.saved == 2 * (3 + 10));
  }
}

TEST_CASE("every micro-batch in flight holds checkpoints: all with GPipe, P - r with 1F1B") {
  auto const gpipe = held_by(GPipeSchedule{}, bytes);
  auto const one_f_one_b = held_by(OneFOneBSchedule{}, bytes);
  CHECK(gpipe[0].boundaries == 0);  // the first stage reads the batch
  for (std::size_t r = 1; r < 4; ++r) {
    CHECK(gpipe[r].boundaries == 6 * 10);
    CHECK(one_f_one_b[r].boundaries == (4 - r) * 10);
    CHECK(one_f_one_b[r].total() == gpipe[r].total() - (2 + r) * 10);
  }
}

TEST_CASE("a stage holds the boundary that comes in, whatever its own layers hand on") {
  auto unequal = bytes;
  for (std::size_t i = 0; i < layers; ++i) {
    unequal[i].boundary_bytes = 10 * (i + 1);
    unequal[i].parameter_bytes = 1000 * (i + 1);
  }
  auto const held = held_by(GPipeSchedule{}, unequal);
  REQUIRE(held.size() == 4);
  for (std::size_t r = 0; r < 4; ++r) {  // layers 2 r and 2 r + 1
    CAPTURE(r);
    CHECK(held[r].parameters == 1000 * (4 * r + 3));
    CHECK(held[r].boundaries == (r > 0 ? 6 * 10 * (2 * r) : 0));
  }
}

TEST_CASE("bytes for fewer layers than the graph has are refused") {
  auto const code = test::error_of([] { (void)held_by(GPipeSchedule{}, {LayerBytes{}}); }).code();
  CHECK(code == Errc::invalid_argument);
}

}  // namespace bound_memory_test
