// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/host_lane_work.hpp>

#include <doctest/doctest.h>

namespace host_lane_work_test {

using namespace roundpipe;

namespace {

struct Works {
  static constexpr HostLaneTraits lane{host_lane(host_lane_count)};
  void run(Action const&, CallData const&) {}
};
static_assert(HostLaneWork<Works>);

struct HasNoLane {
  void run(Action const&, CallData const&) {}
};
static_assert(!HostLaneWork<HasNoLane>);

struct RunsNothing {
  static constexpr HostLaneTraits lane{LaneKind::optimizer};
};
static_assert(!HostLaneWork<RunsNothing>);

}  // namespace

TEST_CASE("work says by itself how an executor treats its lane") {
  CHECK(host_lane_index(Works::lane.kind) == host_lane_count);
  CHECK_FALSE(Works::lane.outlives_errors);
  CHECK_FALSE(Works::lane.leads_threads);
}

}  // namespace host_lane_work_test
