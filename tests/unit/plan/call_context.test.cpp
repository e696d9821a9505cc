// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/call_context.hpp>

#include <support/error_of.hpp>
#include <support/small_call.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace call_context_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("the compute before a micro-batch is found through all slots of its device") {
  constexpr std::size_t micro_batches = 3;
  SmallCall const small(2, micro_batches, 2);
  auto const input = small.input();
  detail::CallContext call(input);
  REQUIRE(call.slots.size() == 2 * SmallCall::stages);
  std::vector<std::vector<ActionId>> computed(2);  // in order, for each device
  for (std::size_t s = 0; s < call.slots.size(); ++s) {
    auto& mine = computed[call.slots[s].device.index()];
    for (std::size_t m = 0; m < micro_batches; ++m) {
      for (std::size_t back = 1; back <= 2 * micro_batches + 1; ++back) {
        auto const wanted = back <= mine.size() ? mine[mine.size() - back] : ActionId::none();
        CHECK(call.compute_before(SlotId(s), m, back) == wanted);
      }
      mine.emplace_back(10 * s + m);
      call.work[s].last_compute[m] = mine.back();
    }
  }
}

TEST_CASE("the search for the last download skips slots that hand on nothing") {
  SmallCall const small(1, 2);
  auto const input = small.input();
  detail::CallContext call(input);
  CHECK_FALSE(call.last_down(SlotId(4), 2).valid());
  call.work[1].activation_down = {ActionId(7), ActionId(8)};
  call.work[3].activation_down = {ActionId(9), ActionId::none()};
  CHECK(call.last_down(SlotId(4), 2) == ActionId(9));
  CHECK(call.last_down(SlotId(3), 1) == ActionId(9));
  CHECK(call.last_down(SlotId(3), 0) == ActionId(8));
  CHECK(call.last_down(SlotId(1), 1) == ActionId(7));
  CHECK_FALSE(call.last_down(SlotId(1), 0).valid());
}

TEST_CASE("what a later round has overwritten on the host cannot be read") {
  for (bool const layers : {false, true}) {  // where every boundary is kept, there is one entry
    using Levels = std::vector<std::vector<std::size_t>>;
    SmallCall const small(
        1, 1, 3, {}, {.dense = 2}, layers ? std::optional(Levels{}) : std::nullopt);
    auto const input = small.input();
    detail::CallContext call(input);
    std::size_t const entries = layers ? 1 : 2;
    auto const of_round = [&](std::size_t round) {
      auto action =
          call.make(SlotId(0), ActionKind::download_activation, LaneKind::activation_down, 0);
      action.round = RoundId(round);
      return action;
    };
    for (std::size_t round = 0; round < 3; ++round) {
      std::vector<Buffer> written;
      for (std::size_t const boundary : {0, 2}) {
        auto write = of_round(round);
        written.push_back(call.write_kept(write, BufferKind::checkpoint, boundary));
        if (layers && boundary == 0) {
          call.write_kept(write, BufferKind::checkpoint, 1);
        }
        call.graph.add(std::move(write));
      }
      for (std::size_t const boundary : {0, 2}) {
        auto read = of_round(round);
        CHECK(call.read_kept(read, BufferKind::checkpoint, boundary) == written[boundary / 2]);
        CHECK(read.reads == std::vector{written[boundary / 2]});
        if (round >= entries) {
          auto late = of_round(round - entries);
          CHECK(error_of([&] {
                  (void)call.read_kept(late, BufferKind::checkpoint, boundary);
                }).code() == Errc::unsupported);
        }
      }
    }
  }
}

TEST_CASE("an entry is acquired once, by the first action that needs the entry") {
  SmallCall const small(2, 1);
  auto const input = small.input();
  detail::CallContext call(input);
  std::optional<Buffer> entry;
  auto first = call.make(SlotId(1), ActionKind::forward, LaneKind::compute, 0);
  auto second = first;
  auto const buffer = call.acquire_once(entry, BufferKind::gradients, 2, first, 0);
  CHECK(buffer.ring == Ring{BufferKind::gradients, DeviceId(1), 0});
  CHECK(call.acquire_once(entry, BufferKind::gradients, 2, second, 0) == buffer);
  CHECK(first.ring_waits == std::vector{buffer});
  CHECK(second.ring_waits.empty());
}

TEST_CASE("an action knows the place of its slot, and a chunk waits for the existing gates") {
  SmallCall const small(2, 2, 2);
  auto const input = small.input();
  detail::CallContext const call(input);
  StageChunk const chunk{1, true, 24, {{BlockUseId(3), 0, 0, 24}}, {BlockUseId(3)}};
  ActionId const gates[] = {ActionId(4), ActionId::none(), ActionId(2)};
  for (std::size_t s = 0; s < call.slots.size(); ++s) {
    auto const action = call.make_chunk(
        SlotId(s), ActionKind::upload_parameters, LaneKind::parameter_up, chunk, gates, SlotId(0));
    CHECK(action.slot == SlotId(s));
    CHECK(action.stage == StageId(s % SmallCall::stages));
    CHECK(action.round == RoundId(s / SmallCall::stages));
    CHECK(action.lane == Lane{LaneKind::parameter_up, DeviceId(s % 2)});
    CHECK(action.micro_batch == MicroBatchId(1));
    CHECK(action.bytes == 24);
    CHECK(action.gated);
    CHECK(action.window_slot == SlotId(0));
    CHECK(action.waits == std::vector{ActionId(4), ActionId(2)});
  }
}

TEST_CASE("stages are cut one by one, each into the wanted chunks") {
  SmallCall const small(1, 3);
  auto const input = small.input();
  detail::CallContext const call(input);
  auto const cut = detail::cut_stages(
      call, [](StageLayout const& stage, UsePlace const&) { return stage.has_backward(); });
  REQUIRE(cut.size() == SmallCall::stages);
  for (std::size_t i = 0; i < SmallCall::stages; ++i) {
    Bytes bytes = 0;
    for (auto const& chunk : cut[i]) {
      bytes += chunk.bytes;
    }
    CHECK(bytes == (i < 2 ? 0 : small.parameter_bytes(i)));
  }
}

}  // namespace call_context_test
