// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/save_copies.hpp>

#include <roundpipe/graph/verify.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/plan/streamed_graph.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>
#include <support/small_call.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace save_copies_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr std::size_t micro_batches = 4;
constexpr std::size_t layers = 4;

/// Layer 0 offloads nothing, layers 1 and 2, which are one backward stage, as many as given.
OffloadedSaves offloaded(std::size_t count) {
  return {{0, count, count, count}, micro_batches};
}

/// The actions of \p kind, by round, layer and micro-batch.
using Found = std::map<std::tuple<std::size_t, std::size_t, std::size_t>, ActionId>;
Found find(ActionGraph const& graph, ActionKind kind) {
  Found found;
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    auto const& action = graph.actions[i];
    if (action.kind == kind) {
      auto const inserted = found.try_emplace(
          {action.round.index(), action.layer.index(), action.micro_batch.index()}, ActionId(i));
      CHECK(inserted.second);
    }
  }
  return found;
}

/// Whether \p later is on the lane of \p earlier, or waits for it or for what follows there.
bool comes_before(ActionGraph const& graph, ActionId earlier, Action const& later) {
  auto const& lane = graph.actions[earlier.index()].lane;
  return later.lane == lane || std::ranges::any_of(later.waits, [&](ActionId wait) {
           return graph.actions[wait.index()].lane == lane && !(wait < earlier);
         });
}

}  // namespace

TEST_CASE("each offloaded save goes down once, comes up once, and spares a recomputation") {
  for (std::size_t count = 0; count <= micro_batches; ++count) {
    for (std::size_t rounds = 1; rounds <= 2; ++rounds) {
      for (std::size_t devices = 1; devices <= 3; ++devices) {
        auto const chosen = offloaded(count);
        SmallCall const small(devices, micro_batches, rounds, {}, {.dense = 2}, chosen);
        auto const graph = build_streamed_graph(small.input());
        CHECK(verify(graph).empty());
        auto const down = find(graph, ActionKind::download_save);
        auto const up = find(graph, ActionKind::upload_save);
        auto const backward = find(graph, ActionKind::backward);
        std::size_t saves = 0;
        for (std::size_t r = 0; r < rounds; ++r) {
          for (std::size_t layer = 0; layer + 1 < layers; ++layer) {  // the last one is fused
            for (std::size_t m = 0; m < micro_batches; ++m) {
              if (!chosen.has(layer, m)) {
                continue;
              }
              ++saves;
              auto const& sent = graph.actions[down.at({r, layer, m}).index()];
              auto const& back = graph.actions[up.at({r, layer, m}).index()];
              auto const& reader = graph.actions[backward.at({r, layer, m}).index()];
              CHECK(sent.bytes == back.bytes);
              CHECK(comes_before(graph, down.at({r, layer, m}), back));
              CHECK(comes_before(graph, up.at({r, layer, m}), reader));
              CHECK(sent.writes == back.reads);
            }
          }
        }
        CHECK(down.size() == saves);
        CHECK(up.size() == saves);
        auto const runs = std::ranges::count_if(graph.actions, [](Action const& action) {
          return action.kind == ActionKind::forward || action.kind == ActionKind::recompute;
        });
        // Every layer but the fused one runs forward twice, unless it is offloaded.
        CHECK(static_cast<std::size_t>(runs) == rounds * micro_batches * (2 * layers - 1) - saves);
      }
    }
  }
}

TEST_CASE("as many saves are on their way as the ring has entries") {
  for (std::size_t entries = 1; entries <= 3; ++entries) {
    SmallCall const small(
        1, micro_batches, 1, {2, 2, 2, entries}, {.dense = 2}, offloaded(micro_batches));
    auto const graph = build_streamed_graph(small.input());
    CHECK(verify(graph).empty());
    auto const& ring = graph.rings.at({BufferKind::saves, DeviceId(0), 0});
    CHECK(ring.count == entries);
    CHECK(ring.acquisitions == 2 * 2 * micro_batches);  // of two layers, down and up
    // Each waits for all who have used its entry before.
    for (std::size_t i = entries; i < ring.users.size(); ++i) {
      auto const& first = graph.actions[ring.users[i].front().index()];
      for (auto const user : ring.users[i - entries]) {
        CHECK(comes_before(graph, user, first));
      }
    }
  }
}

TEST_CASE("a boundary inside a backward stage goes to the host with the save of its layer alone") {
  auto const chosen = offloaded(1);
  auto const model = describe(toy_model({.dense = 2}), {2, 3});
  auto const blocks = form_blocks(model);
  Partition const partition{{{0, 3}}, {{3, 1}, {1, 2}, {0, 1}}};  // boundary 1 is inside of both
  auto const stages = lay_out_stages(model, blocks, partition, {}, chosen);
  Planner const planner{
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{}};
  auto const graph =
      planner.streamed_graph(blocks, stages, {.micro_batches_per_round = micro_batches});
  CHECK(verify(graph).empty());
  auto const boundary = align_up(model.layers[1].boundary.bytes());
  auto const handles_1 = [](std::vector<Buffer> const& buffers) {
    return std::ranges::any_of(buffers, [](Buffer const& buffer) {
      return buffer.ring.kind == BufferKind::checkpoint && buffer.ring.index / micro_batches == 1;
    });
  };
  std::size_t copies = 0;
  for (auto const& action : graph.actions) {
    auto const has = chosen.has(1, action.micro_batch.index());
    if (action.kind == ActionKind::download_activation && action.stage == StageId(0)) {
      CHECK(handles_1(action.writes) == has);
      CHECK(action.bytes == stages.train[0].out_bytes - (has ? 0 : boundary));
      ++copies;
    }
    if (action.kind == ActionKind::upload_activation && action.stage == StageId(2)) {
      CHECK(handles_1(action.reads) == has);
      ++copies;
    }
  }
  CHECK(copies == 2 * micro_batches);
  auto const host =
      plan_host_memory(model, blocks, {}, stages.train, {.micro_batches_per_round = micro_batches});
  CHECK(host.checkpoints.size() == 2);
  REQUIRE(host.inner_checkpoints.size() == 1);
  CHECK(host.inner_checkpoints.begin()->first == 1);
}

TEST_CASE("two rounds of saves at once are refused, because the host holds one") {
  SmallCall const small(1, 1, 2, {}, {.dense = 2}, {{0, 1, 1}, 1});
  auto input = small.input();
  auto tasks = input.tasks;  // round 0 forward, round 1 forward, then both backward
  std::ranges::stable_sort(tasks[0], {}, [](Task const& task) {
    auto const forward = task.kind == TaskKind::forward;
    return std::pair(!forward, task.round.index());
  });
  StreamedGraphInput const both{input.blocks,
                                input.stages,
                                input.shape,
                                tasks,
                                input.advance,
                                input.ring_stride,
                                input.buffering,
                                input.chunks,
                                input.before};
  CHECK(error_of([&] { (void)build_streamed_graph(both); }).code() == Errc::unsupported);
}

}  // namespace save_copies_test
