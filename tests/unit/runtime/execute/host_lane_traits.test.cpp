// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/execute/host_lane_traits.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <string>

namespace host_lane_traits_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a lane is found by its kind, and a lane without work is refused by name") {
  HostLaneTraits const lanes[] = {{host_lane(host_lane_count)}, {LaneKind::optimizer}};
  CHECK(position_of(LaneKind::optimizer, lanes) == 1);
  CHECK(position_of(host_lane(host_lane_count), lanes) == 0);
  auto const error = error_of([&] { (void)position_of(LaneKind::accumulate, lanes); });
  CHECK(error.code() == Errc::unsupported);
  CHECK(error.message().find("'accumulate'") != std::string::npos);
}

}  // namespace host_lane_traits_test
