// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/save_copies.hpp>

#include <roundpipe/graph/verify.hpp>
#include <roundpipe/plan/streamed_graph.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>
#include <support/small_call.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <ranges>
#include <tuple>
#include <utility>
#include <vector>

namespace save_copies_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr std::size_t micro_batches = 4;
constexpr std::size_t layers = 4;

/// The host keeps nothing of layer 0; of layers 1 and 2, which are one backward stage, so many
/// micro-batches, the first of them in part.
std::vector<std::vector<std::size_t>> levels(std::size_t count) {
  std::vector<std::size_t> of_layer(micro_batches, 0);
  for (std::size_t m = 0; m < count; ++m) {
    of_layer[m] = m == 0 ? 1 : 2;
  }
  return {{}, of_layer, of_layer};
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
        auto const chosen = levels(count);
        SmallCall const small(devices, micro_batches, rounds, {}, {.dense = 2}, chosen);
        auto const graph = build_streamed_graph(small.input());
        CHECK(verify(graph).empty());
        auto const down = find(graph, ActionKind::download_save);
        auto const up = find(graph, ActionKind::upload_save);
        auto const backward = find(graph, ActionKind::backward);
        std::size_t saves = 0;
        for (std::size_t r = 0; r < rounds; ++r) {
          for (std::size_t layer = 1; layer + 1 < layers; ++layer) {  // the last one is fused
            for (std::size_t m = 0; m < count; ++m) {
              ++saves;
              auto const& sent = graph.actions[down.at({r, layer, m}).index()];
              auto const& back = graph.actions[up.at({r, layer, m}).index()];
              auto const& reader = graph.actions[backward.at({r, layer, m}).index()];
              CHECK(sent.bytes == back.bytes);
              CHECK(comes_before(graph, down.at({r, layer, m}), back));
              CHECK(comes_before(graph, up.at({r, layer, m}), reader));
              CHECK(sent.writes == back.reads);
              CHECK(sent.save_level == chosen[layer][m]);
              CHECK(back.save_level == chosen[layer][m]);
            }
          }
        }
        CHECK(down.size() == saves);
        CHECK(up.size() == saves);
        auto const runs = std::ranges::count_if(graph.actions, [](Action const& action) {
          return action.kind == ActionKind::forward || action.kind == ActionKind::recompute;
        });
        // Every layer but the fused one runs forward twice, unless it saves nothing, as layer 0, or
        // the host keeps all.
        auto const keeps_all = 2 * rounds * (count > 0 ? count - 1 : 0);
        CHECK(static_cast<std::size_t>(runs) ==
              rounds * micro_batches * (2 * layers - 2) - keeps_all);
      }
    }
  }
}

TEST_CASE("as many saves are on their way as the ring has entries") {
  for (std::size_t entries = 1; entries <= 3; ++entries) {
    SmallCall const small(
        1, micro_batches, 1, {2, 2, 2, entries}, {.dense = 2}, levels(micro_batches));
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

TEST_CASE("a save that is kept in part is read twice: by the recomputation and by the backward") {
  SmallCall const small(1, micro_batches, 1, {}, {.dense = 2}, levels(1));
  auto const graph = build_streamed_graph(small.input());
  CHECK(verify(graph).empty());
  std::vector<ActionKind> readers;
  for (auto const& action : graph.actions) {
    for (auto const& buffer : action.reads) {
      if (buffer.ring.kind == BufferKind::saves && action.lane.kind == LaneKind::compute) {
        readers.push_back(action.kind);
        CHECK(action.save_level == 1);
        CHECK(action.hands_on_output == (action.kind == ActionKind::backward));
      }
    }
  }
  using enum ActionKind;
  CHECK(readers == std::vector{recompute, backward, recompute, backward});
}

TEST_CASE("a save goes behind the activations that are due before it") {
  SmallCall const small(1, micro_batches, 1, {}, {.dense = 2}, levels(micro_batches));
  auto const graph = build_streamed_graph(small.input());
  CHECK(verify(graph).empty());
  auto const waits_for = [&](Action const& save, ActionKind kind, std::size_t m) {
    return std::ranges::any_of(save.waits, [&](ActionId wait) {
      auto const& action = graph.actions[wait.index()];
      return action.kind == kind && action.slot == save.slot &&
             action.micro_batch == MicroBatchId(m);
    });
  };
  std::size_t downs = 0;
  std::size_t ups = 0;
  for (auto const& action : graph.actions) {
    auto const m = action.micro_batch.index();
    if (action.kind == ActionKind::download_save) {
      // Forward stages are layers 0 and 1, and layer 2: both saves are of a stage's last layer.
      CHECK(waits_for(action, ActionKind::download_activation, m));
      ++downs;
    }
    if (action.kind == ActionKind::upload_save && m >= 2) {  // others go up before the slot begins
      CHECK((waits_for(action, ActionKind::upload_gradient, m) ||
             waits_for(action, ActionKind::upload_gradient, m - 1)));
      ++ups;
    }
  }
  CHECK(downs == 2 * micro_batches);
  CHECK(ups == 2 * (micro_batches - 2));
}

TEST_CASE("a slot's first save goes behind the slot's parameters, which go up before the slot") {
  for (std::size_t const entries : {1, 2}) {
    CAPTURE(entries);
    SmallCall const small(
        1, micro_batches, 1, {.parameters = entries}, {.dense = 2}, levels(micro_batches));
    auto const graph = build_streamed_graph(small.input());
    CHECK(verify(graph).empty());
    auto const saves = find(graph, ActionKind::upload_save);
    REQUIRE_FALSE(saves.empty());
    auto const first_id = std::ranges::min(saves | std::views::values);
    auto const& first = graph.actions[first_id.index()];
    auto const waits = std::ranges::any_of(first.waits, [&](ActionId wait) {
      auto const& action = graph.actions[wait.index()];
      return action.kind == ActionKind::upload_parameters && action.slot == first.slot;
    });
    CHECK(waits == (entries == 2));  // with one entry, parameters wait for the slot before
  }
}

TEST_CASE("parameters go behind the saves of their window, and saves behind earlier gradients") {
  std::vector<std::size_t> const of_layer{1, 2, 2};  // so few that chunks fill the last window
  SmallCall const small(
      2, 3, 2, {.parameters = 2, .gradients = 2}, {.dense = 2}, {{{}, of_layer, of_layer}});
  auto const graph = build_streamed_graph(small.input());
  CHECK(verify(graph).empty());
  std::size_t parameters = 0;
  std::size_t saves = 0;
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    auto const& earlier = graph.actions[i];
    for (std::size_t j = i + 1; j < graph.actions.size(); ++j) {
      auto const& later = graph.actions[j];
      if (earlier.kind == ActionKind::upload_save && later.kind == ActionKind::upload_parameters &&
          later.window_slot == earlier.slot && earlier.micro_batch <= later.micro_batch) {
        CHECK(comes_before(graph, ActionId(i), later));
        ++parameters;
      }
      if (earlier.kind == ActionKind::download_gradients &&
          later.kind == ActionKind::download_save && earlier.window_slot == later.slot &&
          earlier.micro_batch < later.micro_batch) {
        CHECK(comes_before(graph, ActionId(i), later));
        ++saves;
      }
    }
  }
  CHECK(parameters > 0);
  CHECK(saves > 0);
}

TEST_CASE("two rounds of saves at once are refused, because the host holds one") {
  SmallCall const small(1, 1, 2, {}, {.dense = 2}, {{{0}, {2}, {2}}});
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
                                input.rings,
                                input.buffering,
                                input.chunks,
                                input.before};
  CHECK(error_of([&] { (void)build_streamed_graph(both); }).code() == Errc::unsupported);
}

}  // namespace save_copies_test
