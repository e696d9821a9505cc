// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/stage_region.hpp>

#include <roundpipe/core/error.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace stage_region_test {

using namespace roundpipe;

// Two forward stages, the fused one, and two backward stages: parameters, gradients, scratch.
std::vector<RegionNeeds> const call{
    {600, 0, 50}, {500, 0, 50}, {100, 400, 300}, {90, 300, 30}, {80, 200, 20}};

TEST_CASE("stages that may follow any others take the largest of each class together") {
  CHECK(lay_out_region(call, {}, 1, 1).bytes == 600 + 50 + 400);  // scratch stands on its own
  CHECK(lay_out_region(call, {}, 2, 1).bytes == 2 * 600 + 300 + 400);
  CHECK(lay_out_region(call, {}, 2, 2).bytes == 2 * 600 + 300 + 2 * 400);
}

TEST_CASE("one device runs the stages of a call in order, call after call") {
  std::vector<DeviceTurns> const parts{{{0}, {1}, {2}, {3}, {4}}};
  auto const region = lay_out_region(call, parts, 2, 1);
  // The last gradients may be on their way down until the next fused stage makes others.
  auto const& last = region.stages[4];
  CHECK(last.gradients_bottom == 600 + 50);
  CHECK(last.gradients_top == 600);
  // The next call's first parameters come while the ones before are still there.
  CHECK(region.bytes == 600 + 20 + 300 + 600);
  // While the second forward stage runs, the first one's parameters are read no more.
  CHECK(region.stages[1].scratch == 500);
  CHECK(region.stages[0].scratch == 600);
  // Those of the fused stage, until the next backward stage makes others. Behind that, the last
  // stage's parameters are there.
  CHECK(region.stages[2].scratch == 100);
  CHECK(region.stages[2].gradients_bottom == 100 + 300);
  CHECK(region.stages[2].gradients_top == 100);
  // The next call's first parameters come while the last stage runs.
  CHECK(region.stages[4].scratch == 600);
  CHECK(region.stages[3].gradients_bottom == 600 + 20);
}

TEST_CASE("parameters with one entry have the bottom alone, and wait for the stage before") {
  std::vector<DeviceTurns> const parts{{{0}, {1}, {2}, {3}, {4}}};
  auto const region = lay_out_region(call, parts, 1, 1);
  CHECK(region.stages[3].scratch == 90);
  CHECK(region.stages[4].scratch == 80);
  CHECK(region.stages[4].gradients_top == 0);
  CHECK(region.stages[4].gradients_bottom == 600 + 50);
  CHECK(region.bytes == 600 + 50 + 200);
}

TEST_CASE(
    "gradients with two entries live for one backward stage more, and two are there at once") {
  std::vector<DeviceTurns> const parts{{{0}, {1}, {2}, {3}, {4}}};
  auto const region = lay_out_region(call, parts, 2, 2);
  CHECK(region.stages[2].gradients_bottom == 600 + 20);  // till the last stage makes its own
  // Each may be at either end.
  CHECK(region.stages[4].gradients_bottom == 650);
  CHECK(region.stages[3].gradients_bottom == 650);
  CHECK(region.bytes == 650 + 300 + 400 + 600);  // of the stage behind, and of the fused one
  auto other = call;
  other[4].gradients = 350;  // with those of the next call's fused stage
  CHECK(lay_out_region(other, parts, 2, 2).bytes == 650 + 350 + 400 + 600);
}

TEST_CASE("a turn that does not end with a reader of its parameters may meet one more") {
  auto needs = call;
  needs[3].reads_to_the_end = false;
  std::vector<DeviceTurns> const parts{{{0}, {1}, {2}, {3}, {4}}};
  CHECK(lay_out_region(call, parts, 2, 1).stages[3].scratch == 90);
  CHECK(lay_out_region(needs, parts, 2, 1).stages[3].scratch == 600);
}

TEST_CASE("stages of a turn share scratch, and no others") {
  // The forward stages have their own parameters.
  std::vector<RegionNeeds> const needs{{0, 0, 70}, {100, 10, 40}, {60, 10, 20}};
  std::vector<DeviceTurns> const parts{{{0}, {0, 1}, {2}}};
  auto const region = lay_out_region(needs, parts, 2, 1);
  CHECK(region.stages[0].scratch == 100);
  CHECK(region.stages[1].gradients_bottom == 100 + 70);
  CHECK(region.bytes == 100 + 70 + 10 + 100);
}

TEST_CASE("what follows a graph may be any graph, on any device, or nothing there at all") {
  std::vector<RegionNeeds> const needs{{10, 5, 0}, {20, 0, 0}, {300, 0, 1}};
  // A device is idle in the first graph; the other graph has the largest parameters.
  std::vector<DeviceTurns> const parts{{{0}}, {}, {{1}, {2}}};
  auto const region = lay_out_region(needs, parts, 2, 1);
  CHECK(region.stages[0].scratch == 20);  // its own, and the first of either graph
  CHECK(region.stages[1].scratch == 300);
  // The other graph makes no gradients, and any number of its runs may come first.
  CHECK(region.stages[0].gradients_bottom == 301);
}

TEST_CASE("rings of parameters and gradients have one entry or two") {
  CHECK_THROWS_AS((void)lay_out_region(call, {}, 3, 1), Error);
  CHECK_THROWS_AS((void)lay_out_region(call, {}, 1, 0), Error);
}

}  // namespace stage_region_test
