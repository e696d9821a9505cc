// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/graph/sequence_order.hpp>
#include <roundpipe/graph/verify.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/own_policies.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>
#include <range/v3/view/cartesian_product.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/sliding.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace streamed_graph_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

template <class S = RoundRobinSchedule, class T = PriorityTransferEngine, class P = OneLayerStages>
TrainingGraphs plan(PlanOptions options, S schedule = S{}, T transfers = T{}, P partitioner = P{}) {
  Training training;
  training.model = {.dense = 3, .drops = true, .crosses = 1, .tied = true};
  training.plan = options;
  return plan_training(training, schedule, transfers, LayerEventProtocol{}, partitioner);
}

/// Copies a whole slot in its last window, behind the activations that are due by then.
struct CopyInLastWindow : CopyAtOnce {
  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors,
                                          std::size_t windows) const {
    auto result = CopyAtOnce::chunks(tensors, windows);
    result.front().gated = true;
    return result;
  }
};

/// Rings and blocks are used in order, across consecutive calls too.
void check_order(TrainingGraphs const& graphs) {
  for (auto const& violation : verify(sequence_of(graphs, issue_iterations(3, 1, false)))) {
    FAIL_CHECK(violation.text);
  }
}

/// A graph of one stage with as little memory as it needs.
TrainingGraphs one_stage_from_single_entries(ToyModelOptions const& model) {
  Training training;
  training.model = model;
  training.plan = {.devices = 2, .micro_batches_per_round = 2, .rounds = 4};
  auto const protocol = LayerEventProtocol{};
  training.plan.device_memory = smallest_device_memory(
      training, RoundRobinSchedule{}, PriorityTransferEngine{}, protocol, OneStage{});
  auto graphs =
      plan_training(training, RoundRobinSchedule{}, PriorityTransferEngine{}, protocol, OneStage{});
  REQUIRE(graphs.stages.memory.buffering == Buffering{1, 1, 1});
  check_order(graphs);
  return graphs;
}

/// The last action that uses what \p upload brings, in the call. The next call's upload waits for
/// it.
Action const& last_user(ActionGraph const& graph, Action const& upload) {
  auto const& buffer = upload.writes.front();
  auto const& users = graph.rings.at(buffer.ring).users.at(buffer.sequence);
  return graph.actions[users.back().index()];
}

/// The compute action that \p copy waits for.
Action const& awaited_compute(ActionGraph const& graph, Action const& copy) {
  Action const* awaited = nullptr;
  for (auto const wait : copy.waits) {
    auto const& action = graph.actions[wait.index()];
    if (action.lane.kind == LaneKind::compute) {
      CHECK(awaited == nullptr);
      awaited = &action;
    }
  }
  REQUIRE(awaited != nullptr);
  return *awaited;
}

}  // namespace

TEST_CASE("all accesses to buffers are ordered, for every size, policy and buffering") {
  using namespace ranges;
  for (auto const [devices, micro_batches, rounds] :
       views::cartesian_product(views::iota(1, 4), views::iota(1, 5), views::iota(1, 4))) {
    CAPTURE(devices);
    CAPTURE(micro_batches);
    CAPTURE(rounds);
    PlanOptions options{.devices = static_cast<std::size_t>(devices),
                        .micro_batches_per_round = static_cast<std::size_t>(micro_batches),
                        .rounds = static_cast<std::size_t>(rounds),
                        .device_memory = 1_GiB};
    check_order(plan(options));
    check_order(plan(options, RoundRobinSchedule{}, PriorityTransferEngine{}, Partitioner{}));
    check_order(plan(options, LoopedBfs{}));
    check_order(plan(options, RoundRobinSchedule{}, CopyAtOnce{}));
    check_order(plan(options, RoundRobinSchedule{}, UnplannedTransfers{}));
  }
}

TEST_CASE("a tight budget leads to single buffers, and all accesses stay ordered") {
  PlanOptions options{
      .devices = 2, .micro_batches_per_round = 3, .rounds = 2, .device_memory = 1_GiB};
  auto const tight = [&] {
    return plan(options, RoundRobinSchedule{}, PriorityTransferEngine{}, Partitioner{});
  };
  for (auto bytes = tight().stages.memory.bytes; bytes > 0; bytes -= 256) {
    options.device_memory = bytes;
    try {
      auto const planned = tight();
      CHECK(planned.stages.memory.bytes <= bytes);
      check_order(planned);
      bytes = std::min(bytes, planned.stages.memory.bytes);
    } catch (Error const& error) {
      CHECK(error.code() == Errc::over_budget);
      return;
    }
  }
  FAIL("a plan needs no memory");
}

TEST_CASE("every wait points backwards, so that the issue order is topological") {
  auto const graph = plan({3, 4, 2, 1_GiB}).call;
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    for (auto const wait : graph.actions[i].waits) {
      CHECK(wait.index() < i);
    }
  }
}

TEST_CASE("activations go up one micro-batch early and come down one late") {
  auto const graph = plan({2, 4, 2, 1_GiB}).call;
  auto const actions = GraphSequence(2).add(graph).unroll();
  SequenceOrder const order(actions);
  auto const find = [&](ActionKind kind, SlotId slot, std::size_t m) {
    ActionId first;
    ActionId last;
    for (std::size_t i = 0; i < graph.actions.size(); ++i) {
      auto const& action = graph.actions[i];
      if (action.kind == kind && action.slot == slot && action.micro_batch == MicroBatchId(m)) {
        first = first.valid() ? first : ActionId(i);
        last = ActionId(i);
      }
    }
    return std::pair{first, last};
  };
  for (std::size_t slot = 0; slot < 2; ++slot) {  // forward stages
    for (std::size_t m = 1; m < 4; ++m) {
      auto const up = find(ActionKind::upload_activation, SlotId(slot), m).first;
      REQUIRE(up.valid());
      auto const before = find(ActionKind::forward, SlotId(slot), m - 1).second;
      CHECK_FALSE(
          order.holds(before.index(), up.index()));  // not after the compute of the previous one
      if (m > 1) {                                   // but after the compute of the one before that
        CHECK(
            order.holds(find(ActionKind::forward, SlotId(slot), m - 2).second.index(), up.index()));
      }
      auto const here = find(ActionKind::forward, SlotId(slot), m).first;
      auto const down = find(ActionKind::download_activation, SlotId(slot), m - 1).first;
      REQUIRE(down.valid());
      CHECK_FALSE(
          order.holds(down.index(), here.index()));  // compute does not wait for the previous one
    }
  }
}

TEST_CASE("the chunks of a window wait for its start and for its activation copy") {
  auto const graph = plan({2, 4, 2, 1_GiB}).call;
  auto const actions = GraphSequence(2).add(graph).unroll();
  SequenceOrder const order(actions);
  std::size_t gated = 0;
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    auto const& chunk = graph.actions[i];
    if (chunk.kind != ActionKind::upload_parameters || chunk.waits.empty()) {
      continue;
    }
    // The chunk goes up in the windows of the previous slot on the device.
    SlotId host;
    for (auto const& action : graph.actions) {
      if (action.lane.device == chunk.lane.device && action.lane.kind == LaneKind::compute &&
          action.slot < chunk.slot) {
        host = std::max(host, action.slot);
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      auto const& other = graph.actions[j];
      auto const goes_up =
          other.kind == ActionKind::upload_activation || other.kind == ActionKind::upload_gradient;
      if (other.slot == host && goes_up &&
          other.micro_batch.value() <= chunk.micro_batch.value() + 1) {
        CHECK(order.holds(j, i));
        ++gated;
      }
      if (other.slot == host && other.lane.kind == LaneKind::compute &&
          other.micro_batch < chunk.micro_batch) {
        CHECK(order.holds(j, i));
      }
    }
  }
  CHECK(gated > 0);
}

TEST_CASE("every parameter goes up, and every gradient comes down, once for each slot") {
  auto const planned = plan({3, 3, 2, 1_GiB});
  std::map<std::pair<ActionKind, SlotId>, Bytes> copied;
  std::map<SlotId, StageId> stages;
  for (auto const& action : planned.call.actions) {
    if (action.slot.valid()) {
      stages[action.slot] = action.stage;
    }
    if (!action.pieces.empty()) {
      copied[{action.kind, action.slot}] += action.bytes;
    }
  }
  for (auto const& [slot, stage] : stages) {
    auto const& layout = planned.stages.train[stage.index()];
    Bytes wanted = 0;
    for (auto const& use : layout.uses) {
      for (auto const& spec : planned.blocks.block_of(use.use).master) {
        wanted += spec.bytes();
      }
    }
    CHECK(copied[{ActionKind::upload_parameters, slot}] == wanted);
    CHECK(copied[{ActionKind::download_gradients, slot}] == (layout.has_backward() ? wanted : 0));
  }
}

TEST_CASE("a slot without parameter windows begins before its last parameters arrive") {
  Training training;
  training.model = {.types = {.width = 64}, .dense = 6};
  training.plan = {.devices = 1, .micro_batches_per_round = 4, .rounds = 1, .device_memory = 1_GiB};
  auto const planned = plan_training(training,
                                     RoundRobinSchedule{},
                                     PriorityTransferEngine{},
                                     LayerEventProtocol{},
                                     Partitioner{});
  auto const& actions = planned.call.actions;
  std::vector<ActionId> uploads;
  std::vector<ActionId> awaited;  // what the layers wait for, in their order
  for (std::size_t i = 0; i < actions.size(); ++i) {
    auto const& action = actions[i];
    if (action.slot == SlotId(0) && action.kind == ActionKind::upload_parameters) {
      uploads.emplace_back(i);
    }
    if (action.slot == SlotId(0) && action.kind == ActionKind::recompute && action.first) {
      for (auto const wait : action.waits) {
        if (actions[wait.index()].kind == ActionKind::upload_parameters) {
          awaited.push_back(wait);
        }
      }
    }
  }
  REQUIRE(planned.stages.train.front().range.count == awaited.size());
  REQUIRE(awaited.size() >= 3);
  CHECK(std::ranges::is_sorted(awaited));
  CHECK(awaited.front() == uploads.front());
  CHECK(awaited[1] < uploads.back());
}

TEST_CASE("one stage from single entries: parameters stay for a device's rounds of a call") {
  auto const graphs = one_stage_from_single_entries({.dense = 3});
  std::map<RoundId, std::vector<LayerId>> uploaded;
  for (auto const& action : graphs.call.actions) {
    if (action.kind != ActionKind::upload_parameters) {
      continue;
    }
    CHECK(action.round < RoundId(2));  // the first of each of the two devices
    CHECK(action.waits.empty());       // but for the call before
    auto const layer = graphs.blocks.use(action.pieces.front().use).layer;
    uploaded[action.round].push_back(layer);
    auto const& done = last_user(graphs.call, action);
    // The backward of the first layer reads no parameters.
    CHECK((done.kind == ActionKind::backward) == (layer > LayerId(0)));
    CHECK(done.last);
    CHECK(done.layer == layer);
    CHECK(done.round.index() == action.round.index() + 2);
  }
  CHECK(uploaded.size() == 2);
  for (auto& [round, layers] : uploaded) {  // what the call before is done with first
    CHECK(layers.size() > 3);
    CHECK(layers.front() == LayerId(0));
    layers.erase(layers.begin());
    CHECK(std::ranges::is_sorted(layers, std::ranges::greater{}));
  }
}

TEST_CASE("one stage from single entries: gradients wait for their own layer alone") {
  auto const graphs = one_stage_from_single_entries({.dense = 3});
  std::map<RoundId, std::vector<LayerId>> downloaded;
  for (auto const& action : graphs.call.actions) {
    if (action.kind != ActionKind::download_gradients) {
      continue;
    }
    auto const layer = graphs.blocks.use(action.pieces.front().use).layer;
    downloaded[action.round].push_back(layer);
    auto const& done = awaited_compute(graphs.call, action);
    CHECK(done.kind == ActionKind::backward);
    CHECK(done.last);
    CHECK(done.layer == layer);
    CHECK(done.round == action.round);
  }
  CHECK(downloaded.size() == 4);
  for (auto const& [round, layers] : downloaded) {
    CHECK(layers.size() > 3);
    CHECK(std::ranges::is_sorted(layers, std::ranges::greater{}));
  }
}

TEST_CASE("one stage on two devices: sums wait until a round has landed, a shared tensor's last") {
  auto const graphs = one_stage_from_single_entries({.dense = 3, .tied = true});
  std::map<RoundId, ActionId> landed;  // the last one
  std::map<RoundId, std::vector<LayerId>> summed;
  for (std::size_t i = 0; i < graphs.call.actions.size(); ++i) {
    auto const& action = graphs.call.actions[i];
    if (action.kind == ActionKind::download_gradients) {
      CHECK(summed[action.round].empty());
      landed[action.round] = ActionId(i);
    } else if (action.kind == ActionKind::accumulate_gradient) {
      summed[action.round].push_back(action.layer);
      CHECK(std::find(action.waits.begin(), action.waits.end(), landed[action.round]) !=
            action.waits.end());
    }
  }
  CHECK(summed.size() == 4);
  for (auto const& [round, layers] : summed) {
    CHECK(layers.size() == graphs.blocks.uses.size());
    auto const shared = std::find(layers.begin(), layers.end(), LayerId(0));
    CHECK(layers.end() - shared == 2);  // it, and the tensor's other use
  }
}

TEST_CASE("a block that two layers of one stage use goes up once, when the last of them is done") {
  auto const graphs = one_stage_from_single_entries({.dense = 3, .tied = true});
  auto const& uses = graphs.blocks.block_of(graphs.blocks.layer_uses.front().front()).uses;
  REQUIRE(uses.size() == 2);
  std::size_t uploads = 0;
  std::size_t downloads = 0;
  for (auto const& action : graphs.call.actions) {
    auto const is_shared = [&](BlockPiece const& piece) {
      return piece.use == uses.front() || piece.use == uses.back();
    };
    if (std::ranges::none_of(action.pieces, is_shared)) {
      continue;
    }
    if (action.kind == ActionKind::download_gradients) {
      ++downloads;
      continue;
    }
    ++uploads;
    CHECK(action.pieces.front().use == uses.front());
    auto const& done = last_user(graphs.call, action);
    CHECK(done.kind == ActionKind::backward);
    CHECK(done.layer == graphs.blocks.use(uses.back()).layer);
  }
  CHECK(uploads == 2);  // one a device
  CHECK(downloads == 2 * 4);
}

TEST_CASE("a loss comes down as soon as the loss layer is done, and is issued behind it") {
  auto const graphs = plan({.devices = 1, .micro_batches_per_round = 2, .device_memory = 1_GiB},
                           RoundRobinSchedule{},
                           PriorityTransferEngine{},
                           OneStage{});
  std::size_t losses = 0;
  for (std::size_t i = 0; i < graphs.call.actions.size(); ++i) {
    auto const& action = graphs.call.actions[i];
    if (action.kind == ActionKind::download_activation) {
      REQUIRE(action.waits == std::vector{ActionId(i - 1)});
      auto const& writer = graphs.call.actions[i - 1];
      CHECK(writer.kind == ActionKind::backward);
      CHECK(writer.layer == LayerId(graphs.blocks.layer_uses.size() - 1));
      ++losses;
    }
  }
  CHECK(losses == 2);
}

TEST_CASE("consecutive slots run on consecutive devices") {
  auto const planned = plan({3, 2, 2, 1_GiB});
  std::vector<Action> firsts;  // of each slot
  for (auto const& action : planned.call.actions) {
    if (action.lane.kind == LaneKind::compute &&
        (firsts.empty() || firsts.back().slot < action.slot)) {
      firsts.push_back(action);
    }
  }
  CHECK(firsts.size() == 2 * planned.stages.partition.size());
  for (auto&& pair : firsts | ranges::views::sliding(2)) {
    CHECK(pair[1].lane.device.value() == (pair[0].lane.device.value() + 1) % 3);
  }
  CHECK(planned.call.advance == firsts.size() % 3);
}

TEST_CASE("the uses of a shared block are summed in layer order, round by round") {
  auto const planned = plan({2, 2, 3, 1_GiB});
  std::map<BlockId, std::vector<std::pair<RoundId, LayerId>>> sums;
  for (auto const& action : planned.call.actions) {
    if (action.kind == ActionKind::accumulate_gradient) {
      sums[action.block].emplace_back(action.round, action.layer);
      CHECK(action.first == (sums[action.block].size() == 1));
    }
  }
  std::size_t shared = 0;
  for (auto const& [block, order] : sums) {
    CHECK(std::is_sorted(order.begin(), order.end()));
    shared += planned.blocks.blocks[block.index()].uses.size() > 1 ? 1 : 0;
    CHECK(order.size() == 3 * planned.blocks.blocks[block.index()].uses.size());
  }
  CHECK(shared == 1);
}

TEST_CASE("gradients wait for earlier activations, also in windows without activations") {
  // The last slot hands on nothing; the slot before it does, up to its last micro-batch.
  for (std::size_t micro_batches = 1; micro_batches <= 4; ++micro_batches) {
    check_order(plan({1, micro_batches, 1, 1_GiB}, RoundRobinSchedule{}, CopyInLastWindow{}));
  }
}

}  // namespace streamed_graph_test
