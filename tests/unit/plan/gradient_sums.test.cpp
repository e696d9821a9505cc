// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/gradient_sums.hpp>

#include <support/error_of.hpp>
#include <support/small_call.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace gradient_sums_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

StreamedGraphInput with_ranks(StreamedGraphInput input, std::size_t ranks) {
  input.deal = DealtRounds(ranks, input.shape.rounds);
  return input;
}

/// A model whose first and last layer may share their matrix, in two rounds.
struct Sums {
  explicit Sums(bool tied = true, std::size_t ranks = 1)
      : small(1, 1, 2, {}, {.dense = 2, .tied = tied}), input(with_ranks(small.input(), ranks)) {}

  SmallCall small;
  StreamedGraphInput input;
  LandingRings rings{input.blocks, input.stages, 1, input.shape.rounds};
  detail::CallContext call{input};
  detail::GradientSums sums{call};

  /// The two uses of the shared block, in layer order.
  [[nodiscard]] std::vector<BlockUseId> shared_uses() const {
    for (auto const& block : small.blocks().blocks) {
      if (block.uses.size() == 2) {
        return block.uses;
      }
    }
    return {};
  }

  /// Brings one of \p chunks chunks of the gradient of \p use in \p round to the host.
  ActionId bring(BlockUseId use, std::size_t round, std::size_t chunks = 1) {
    Action action;
    action.kind = ActionKind::download_gradients;
    action.lane = {LaneKind::gradient_down, DeviceId(0)};
    action.round = RoundId(round);
    action.writes.push_back(sums.land(use, chunks, action));
    auto const added = call.graph.add(std::move(action));
    sums.landed(use, RoundId(round), added);
    return added;
  }

  [[nodiscard]] std::vector<Action> accumulations() {
    return actions_of(std::move(call), ActionKind::accumulate_gradient);
  }
  [[nodiscard]] std::vector<Action> reductions() {
    return actions_of(std::move(call), ActionKind::reduce_gradient);
  }
};

}  // namespace

TEST_CASE("the gradients of a shared block are summed in layer order, in any order of arrival") {
  Sums test;
  auto const uses = test.shared_uses();
  REQUIRE(uses.size() == 2);
  auto const late = test.bring(uses[1], 0);
  auto const early = test.bring(uses[0], 0);
  auto const again = test.bring(uses[0], 1);
  auto const sums = test.accumulations();
  REQUIRE(sums.size() == 3);
  auto const check = [&](Action const& sum, BlockUseId use, ActionId landed, bool first) {
    CHECK(sum.use == use);
    CHECK(sum.layer == test.small.blocks().use(use).layer);
    CHECK(sum.waits == std::vector{landed});
    CHECK(sum.first == first);
    CHECK(sum.reads.front().ring ==
          Ring{BufferKind::landing, DeviceId::none(), test.rings.index(use, RoundId(0))});
    CHECK(sum.writes == std::vector{block_buffer(BufferKind::gradient, sum.block)});
  };
  check(sums[0], uses[0], early, true);
  check(sums[1], uses[1], late, false);
  check(sums[2], uses[0], again, false);
}

TEST_CASE("a gradient is summed when its last chunk has arrived") {
  Sums test;
  auto const use = test.shared_uses().front();
  test.bring(use, 0, 3);
  test.bring(use, 0, 3);
  auto const last = test.bring(use, 0, 3);
  auto const sums = test.accumulations();
  REQUIRE(sums.size() == 1);
  CHECK(sums[0].waits == std::vector{last});
}

TEST_CASE("a partly arrived gradient waits for the rest, other gradients of its block do not") {
  Sums test;
  auto const uses = test.shared_uses();
  test.bring(uses[1], 0, 2);
  auto const early = test.bring(uses[0], 0);
  auto const rest = test.bring(uses[1], 0, 2);
  auto const sums = test.accumulations();
  REQUIRE(sums.size() == 2);
  CHECK(sums[0].waits == std::vector{early});
  CHECK(sums[1].waits == std::vector{rest});
}

TEST_CASE("a landing is free again after its content is summed") {
  Sums test;
  auto const use = test.shared_uses().front();
  test.bring(use, 0);
  auto const sum = ActionId(1);
  auto const next = test.bring(use, 1);
  CHECK(test.call.graph[sum].kind == ActionKind::accumulate_gradient);
  CHECK(test.call.graph[next].waits == std::vector{sum});
}

TEST_CASE("a gradient of the next stage lands where the one before was, once that is summed") {
  BlockUseId const first(3);  // the last layer's
  BlockUseId const second(1);
  Sums test(false);
  REQUIRE(test.rings.index(first, RoundId(0)) == test.rings.index(second, RoundId(0)));
  test.bring(first, 0);
  auto const sum = ActionId(1);
  auto const next = test.bring(second, 0);
  CHECK(test.call.graph[sum].kind == ActionKind::accumulate_gradient);
  CHECK(test.call.graph[next].waits == std::vector{sum});
  Sums early(false);
  early.bring(first, 0, 2);  // half of it
  CHECK(error_of([&] { early.bring(second, 0); }).code() == Errc::unsupported);
}

TEST_CASE("a gradient that arrives before the sum of the round before is refused") {
  Sums test;
  auto const use = test.shared_uses().back();
  test.bring(use, 0);  // waits for the other use
  CHECK(error_of([&] { test.bring(use, 1); }).code() == Errc::unsupported);
}

TEST_CASE("ranks reduce each block once a round, when all its uses have arrived") {
  Sums test(true, 3);
  auto const& blocks = test.small.blocks();
  std::map<std::pair<std::size_t, BlockUseId>, ActionId> landed;
  for (std::size_t round = 0; round < 2; ++round) {
    for (auto u = blocks.uses.size(); u-- > 0;) {  // as the backward goes
      BlockUseId const use(u);
      landed[{round, use}] = test.bring(use, round);
    }
  }
  auto const sums = test.reductions();
  REQUIRE(sums.size() == 2 * blocks.blocks.size());
  for (auto const& sum : sums) {
    auto const& block = blocks.blocks[sum.block.index()];
    auto const last = landed.at({sum.round.index(), block.uses.front()});  // it implies the others
    CHECK(sum.waits == std::vector{last});
    CHECK(sum.lane == Lane{LaneKind::reduce, DeviceId::none()});
    CHECK(sum.reads.size() == block.uses.size());
    CHECK(sum.first == (sum.round == RoundId(0)));
    CHECK(sum.layer == blocks.use(block.uses.front()).layer);
    CHECK(sum.bytes ==
          3 * block.uses.size() * block.master.bytes() + 2 * block.host_gradient().bytes());
    CHECK(sum.received == 2 * block.uses.size() * block.master.bytes());
    CHECK(sum.writes == std::vector{block_buffer(BufferKind::gradient, sum.block)});
  }
}

TEST_CASE("a rank with fewer rounds than others takes part in their reductions, without landings") {
  Sums test(false, 2);
  test.input.deal = DealtRounds(std::vector<std::size_t>{1, 3});
  test.input.shape.rounds = 1;
  auto const& blocks = test.small.blocks();
  for (auto u = blocks.uses.size(); u-- > 0;) {
    test.bring(BlockUseId(u), 0);
  }
  auto const sums = test.reductions();
  REQUIRE(sums.size() == 3 * blocks.blocks.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    auto const& sum = sums[i];
    bool const is_own = i < blocks.blocks.size();
    CHECK(sum.round == RoundId(i / blocks.blocks.size()));
    CHECK(sum.block == sums[i % blocks.blocks.size()].block);
    CHECK(sum.reads.size() == (is_own ? 1 : 0));
    CHECK(sum.received == blocks.blocks[sum.block.index()].master.bytes());  // of the other rank
  }
}

TEST_CASE("ranks reduce in the order of the backward, whatever arrives first") {
  Sums test(false, 2);
  for (auto const use : {3, 1, 2, 0}) {  // 1 and 2 are of one stage
    test.bring(BlockUseId(static_cast<std::size_t>(use)), 0);
  }
  std::vector<LayerId> order;
  for (auto const& sum : test.reductions()) {
    order.push_back(sum.layer);
  }
  CHECK(order == std::vector{LayerId(3), LayerId(2), LayerId(1), LayerId(0)});
}

}  // namespace gradient_sums_test
