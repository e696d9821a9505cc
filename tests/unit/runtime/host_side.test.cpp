// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/host_side.hpp>

#include <roundpipe/optim/adamw.hpp>
#include <support/planned_call.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>

namespace host_side_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE(
    "the host takes all that the plan counts, and has first values and a lane for each work") {
  PlannedCall planned;
  AdamW const optimizer({.rate = LearningRate::constant(0.1)});
  auto const plan = make_pipeline_plan(planned.model,
                                       planned.backend,
                                       planned.planner,
                                       planned.shapes.capacity(),
                                       PlannedCall::options(),
                                       needs_of(optimizer));
  HostSide<HostBackend, AdamW> host(
      planned.backend, optimizer, plan, PlannedCall::options(), Policies{}, CpuPlan{});
  CHECK(host.arena.bytes() == total_bytes(plan.ledger, LedgerLine::Space::host));
  CHECK(host.progress.trains());
  bool has_values = false;
  host.weights.for_each([&](auto const&, auto const&, HostSpan<float const> values) {
    for (auto const value : values) {
      has_values = has_values || value != 0;
    }
  });
  CHECK(has_values);
  auto const lanes = host.lanes();
  for (std::size_t k = 0; k < host_lane_count; ++k) {
    auto const kind = host_lane(k);
    bool const is_for_ranks = kind == LaneKind::reduce || kind == LaneKind::gather;
    CHECK(std::ranges::count(lanes, kind, [](auto* work) { return work->lane().kind; }) ==
          (is_for_ranks ? 0 : 1));  // this is one process
  }
}

}  // namespace host_side_test
