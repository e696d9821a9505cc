// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/policies/blocking_protocol.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace blocking_protocol_test {

using namespace roundpipe;
using enum roundpipe::BlockEventKind;

namespace {

constexpr EventProtocolOptions all_options[] = {
    {0, 1, 1}, {1, 1, 1}, {1, 1, 2}, {1, 2, 1}, {1, 2, 2}};

std::vector<BlockEvent> sorted(std::vector<BlockEvent> events) {
  std::sort(events.begin(), events.end());
  return events;
}

}  // namespace

TEST_CASE("every block replaces the same block in the rules, at the same age") {
  constexpr std::size_t blocks = 3;
  for (auto const& options : all_options) {
    BlockingProtocol const blocking(options);
    LayerEventProtocol const rules(options);
    for (auto const kind : {upload, gradient_write, optimizer_step, parameter_copy}) {
      std::vector<BlockEvent> expected;
      for (std::size_t b = 0; b < blocks; ++b) {
        auto const of_block = rules.before({BlockId(b), kind}, blocks);
        expected.insert(expected.end(), of_block.begin(), of_block.end());
      }
      for (std::size_t b = 0; b < blocks; ++b) {
        CHECK(sorted(blocking.before({BlockId(b), kind}, blocks)) == sorted(expected));
      }
    }
  }
}

TEST_CASE("it has the staleness and the double buffers of the protocol by layers") {
  for (auto const& options : all_options) {
    BlockingProtocol const blocking(options);
    CHECK(blocking.staleness() == options.staleness);
    CHECK(blocking.master_copies() == options.master_copies);
    CHECK(blocking.gradient_buffers() == options.gradient_buffers);
  }
  CHECK(BlockingProtocol{0}.master_copies() == 1);
  CHECK(BlockingProtocol{1}.master_copies() == 2);
}

TEST_CASE("a model of one block is ordered as by layers") {
  for (auto const& options : all_options) {
    for (auto const kind : {upload, gradient_write, optimizer_step, parameter_copy}) {
      BlockEvent const event{BlockId(0), kind};
      CHECK(BlockingProtocol(options).before(event, 1) ==
            LayerEventProtocol(options).before(event, 1));
    }
  }
}

TEST_CASE("invalid options and unknown blocks are refused") {
  using test::error_of;
  CHECK(error_of([] { return BlockingProtocol{2}; }).code() == Errc::invalid_argument);
  CHECK(error_of([] { return BlockingProtocol({.master_copies = 3}); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([] { return BlockingProtocol{}.before({BlockId(3), upload}, 3); }).code() ==
        Errc::invalid_argument);
}

}  // namespace blocking_protocol_test
