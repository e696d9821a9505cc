// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/graph/protocol_check.hpp>

#include <roundpipe/policies/layer_event_protocol.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace protocol_check_test {

using namespace roundpipe;
using test::error_of;

namespace {

Errc constexpr wrong = Errc::invalid_argument;

}  // namespace

TEST_CASE("a protocol is 0 or 1 steps behind, and has one or two of what it buffers") {
  for (int const staleness : {0, 1}) {
    for (std::size_t const copies : {1, 2}) {
      for (std::size_t const buffers : {1, 2}) {
        detail::check_protocol(staleness, copies, buffers);
      }
    }
  }
  for (int const staleness : {-1, 2}) {
    auto const error = error_of([&] { detail::check_protocol(staleness, 1, 1); });
    CHECK(error.code() == wrong);
    CHECK(error.message().find("EventProtocol::staleness") != std::string::npos);
  }
  for (std::size_t const count : {0, 3}) {
    auto const copies = error_of([&] { detail::check_protocol(0, count, 1); });
    CHECK(copies.message().find("EventProtocol::master_copies") != std::string::npos);
    auto const buffers = error_of([&] { detail::check_protocol(0, 1, count); });
    CHECK(buffers.message().find("EventProtocol::gradient_buffers") != std::string::npos);
  }
  check(LayerEventProtocol{});
}

TEST_CASE("an event that an action waits for is of a block of the model and at most 2 steps old") {
  BlockEvent const action{BlockId(0), BlockEventKind::upload, 0};
  auto const check_one = [&](BlockEvent const& event) {
    detail::check_events(std::vector{event}, action, 3);
  };
  check_one({BlockId(2), BlockEventKind::upload, 2});
  CHECK(error_of([&] { check_one({BlockId(3), BlockEventKind::upload, 0}); }).code() == wrong);
  CHECK(error_of([&] { check_one({BlockId::none(), BlockEventKind::upload, 0}); }).code() == wrong);
  CHECK(error_of([&] { check_one({BlockId(0), BlockEventKind::upload, 3}); }).code() == wrong);
  auto const kind = static_cast<BlockEventKind>(block_event_kind_count);
  CHECK(error_of([&] { check_one({BlockId(0), kind, 0}); }).code() == wrong);
}

}  // namespace protocol_check_test
