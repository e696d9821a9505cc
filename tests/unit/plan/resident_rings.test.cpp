// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/plan/resident_rings.hpp>

#include <roundpipe/graph/verify.hpp>
#include <roundpipe/memory/host_rings.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/slot_order.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace resident_rings_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

TrainingGraphs plan(PlanOptions const& options, ToyModelOptions const& model = {.dense = 2}) {
  Training training;
  training.model = model;
  training.plan = options;
  auto const with = [&](auto const& partitioner) {
    return plan_training(training,
                         RoundRobinSchedule{},
                         PriorityTransferEngine{},
                         LayerEventProtocol{},
                         partitioner);
  };
  auto const any_go = options.devices == 1 || options.reaches_peers;
  return any_go ? with(OneLayerStages{}) : with(OneForwardStage{});
}

/// All that can stay does.
PlanOptions everything(std::size_t devices, std::size_t micro_batches, std::size_t rounds) {
  PlanOptions options;
  options.devices = devices;
  options.micro_batches_per_round = micro_batches;
  options.rounds = rounds;
  options.device_memory = 1_GiB;
  options.resident_boundaries = true;
  return options;
}

std::vector<PlanOptions> kinds_of_plans(std::size_t devices) {
  auto const stages = everything(devices, 3, 2);
  auto layers = stages;
  layers.checkpoints = Checkpoints::layers;
  auto saves = stages;
  saves.save_levels = {{}, {1, 0, 2}, {0, 1, 1}};
  auto overlapping = saves;
  overlapping.overlaps_rounds = true;
  return {stages, layers, saves, overlapping};
}

/// Such plans on devices that reach each other, from which nothing need pass through the host.
std::vector<PlanOptions> kinds_of_peer_plans(std::size_t devices) {
  auto kinds = kinds_of_plans(devices);
  for (auto& options : kinds) {
    options.reaches_peers = true;
    options.peer_boundaries = true;
  }
  return kinds;
}

HostRings host_rings(TrainingGraphs const& graphs, PlanOptions const& options) {
  return {
      graphs.stages.train, options.micro_batches_per_round, options.rounds, graphs.stages.resident};
}

std::size_t count_of(ActionGraph const& graph, ActionKind kind) {
  return static_cast<std::size_t>(std::ranges::count(graph.actions, kind, &Action::kind));
}

/// The resident ring that \p action writes, or null.
Buffer const* resident_write(Action const& action) {
  auto const found = std::ranges::find_if(action.writes, is_resident);
  return found == action.writes.end() ? nullptr : &*found;
}

/// The most rings of \p kind on a device where boundaries stay, in a call or an evaluation.
std::size_t most_rings_of_a_device(TrainingGraphs const& graphs, BufferKind kind) {
  std::size_t most = 0;
  for (auto const* graph : {&graphs.call, &graphs.evaluation}) {
    std::map<DeviceId, std::size_t> count;
    for (auto const& [ring, use] : graph->rings) {
      if (ring.kind == kind && is_resident({ring, 0})) {
        most = std::max(most, ++count[ring.device]);
      }
    }
  }
  return most;
}

/// Lets what has ring \p from of \p graph have ring \p to, in the order in which it is written.
void merge_rings(ActionGraph& graph, Ring const& from, Ring const& to) {
  std::map<Buffer, std::size_t> sequences;
  auto const move = [&](Buffer& buffer) {
    if (buffer.ring == from || buffer.ring == to) {
      auto const sequence = sequences.try_emplace(buffer, sequences.size()).first->second;
      buffer = {to, sequence};
    }
  };
  auto& users = graph.rings.at(to).users;
  users.clear();
  graph.rings.erase(from);
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    auto& action = graph.actions[i];
    std::erase_if(action.ring_waits, [&](Buffer const& buffer) {  // its lane's order implies it
      return buffer.ring == from || buffer.ring == to;
    });
    for (auto* const list : {&action.reads, &action.writes}) {
      for (auto& buffer : *list) {
        move(buffer);
        if (buffer.ring == to) {
          users.resize(std::max(users.size(), buffer.sequence + 1));
          users[buffer.sequence].emplace_back(i);
        }
      }
    }
  }
  graph.rings.at(to).acquisitions = users.size();
}

/// From the first action that uses an entry of \p ring to the last, by entry.
std::vector<std::pair<ActionId, ActionId>> lives_in(ActionGraph const& graph, Ring const& ring) {
  std::vector<std::pair<ActionId, ActionId>> lives;
  for (auto const& users : graph.rings.at(ring).users) {
    lives.emplace_back(users.front(), users.back());
  }
  return lives;
}

}  // namespace

TEST_CASE("with room nothing of a boundary goes to the host, on one device or between peers") {
  auto all = kinds_of_plans(1);
  for (std::size_t const devices : {2U, 3U}) {
    std::ranges::copy(kinds_of_peer_plans(devices), std::back_inserter(all));
  }
  for (auto const& options : all) {
    auto const graphs = plan(options);
    CHECK(graphs.stages.sent.empty());
    CHECK(count_of(graphs.call, ActionKind::upload_gradient) == 0);
    CHECK((count_of(graphs.call, ActionKind::send_boundary) == 0) == (options.devices == 1));
    CHECK((count_of(graphs.evaluation, ActionKind::send_boundary) == 0) == (options.devices == 1));
    for (auto const* graph : {&graphs.call, &graphs.evaluation}) {
      for (auto const& action : graph->actions) {
        if (action.kind == ActionKind::upload_activation) {
          CHECK(action.reads.size() == 1);
          CHECK(action.reads.front().ring.kind == BufferKind::side_input);
        } else if (action.kind == ActionKind::download_activation) {
          CHECK(std::ranges::all_of(action.writes, [](Buffer const& buffer) {
            return buffer.ring.kind == BufferKind::loss || buffer.ring.kind == BufferKind::results;
          }));
        }
      }
    }
    auto const rings = host_rings(graphs, options);
    CHECK(rings.bytes(BufferKind::checkpoint) == 0);
    CHECK(rings.bytes(BufferKind::boundary_gradient) == 0);
    CHECK(verify(sequence_of(graphs, issue_iterations(4, 1, true))).empty());
  }
}

TEST_CASE("a boundary is sent behind the pass that makes it, once to each device that reads it") {
  for (auto const& options : kinds_of_peer_plans(3)) {
    auto const graphs = plan(options);
    auto const& call = graphs.call;
    auto const any = std::ranges::find_if(call.actions, [](Action const& action) {
      return action.kind == ActionKind::send_boundary && !is_resident(action.reads.front());
    });
    auto early = graphs;
    std::erase_if(early.call.actions[static_cast<std::size_t>(any - call.actions.begin())].waits,
                  [&](ActionId wait) {
                    return call.actions[wait.index()].lane ==
                           Lane{LaneKind::compute, any->lane.device};
                  });
    CHECK_FALSE(verify(sequence_of(early, issue_iterations(2, 1, false)), 1).empty());
    std::size_t readers = 0;
    std::set<Buffer> sent;
    for (auto const& action : call.actions) {
      if (action.kind == ActionKind::send_boundary) {
        REQUIRE(action.reads.size() == 1);
        REQUIRE(action.writes.size() == 1);
        auto const& to = action.writes.front();
        CHECK(action.lane.kind == LaneKind::peer);
        CHECK(to.ring.device != action.lane.device);
        CHECK(action.reads.front().ring.device == action.lane.device);
        CHECK(sent.insert(to).second);
        CHECK(std::ranges::any_of(action.waits, [&](ActionId wait) {
          auto const& pass = call.actions[wait.index()];
          return pass.lane == Lane{LaneKind::compute, action.lane.device} &&
                 pass.layer == action.layer && pass.micro_batch == action.micro_batch;
        }));
      }
      for (auto const& buffer : action.reads) {
        if (is_resident(buffer) && sent.contains(buffer)) {
          auto const send = call.rings.at(buffer.ring).users.at(buffer.sequence).front();
          CHECK(action.lane == Lane{LaneKind::compute, buffer.ring.device});
          readers += std::ranges::count(action.waits, send);
        }
      }
    }
    CHECK(readers >= sent.size());  // later passes of a lane need not wait again
  }
}

TEST_CASE(
    "with little room, what the next stage reads comes first, and the host keeps it as well") {
  auto options = kinds_of_peer_plans(2)[1];  // checkpoints of layers
  ToyModelOptions const model{.dense = 4};
  auto const most = plan(options, model).stages.memory.bytes;
  options.resident_boundaries = false;
  options.peer_boundaries = false;
  auto const least = plan(options, model).stages.memory.bytes;
  options.peer_boundaries = true;
  auto both = 0;
  for (auto bytes = least + 256; bytes < most; bytes += 256) {
    options.device_memory = bytes;
    auto const graphs = plan(options, model);
    auto const& stages = graphs.stages;
    for (auto const& made : stages.sent) {
      CHECK(made.kind == BufferKind::checkpoint);  // a gradient has one reader
      CHECK_FALSE(stages.resident.contains(made));
    }
    both += stages.sent.empty() ? 0 : 1;
    CHECK(verify(sequence_of(graphs, issue_iterations(3, 1, true))).empty());
  }
  CHECK(both > 0);
}

TEST_CASE("devices that reach no peers send nothing, and refuse to") {
  auto options = everything(2, 2, 1);
  CHECK(count_of(plan(options).call, ActionKind::send_boundary) == 0);
  options.peer_boundaries = true;
  CHECK(error_of([&] { (void)plan(options); }).code() == Errc::unsupported);
  options.reaches_peers = true;
  CHECK(count_of(plan(options).call, ActionKind::send_boundary) > 0);
  options.peer_boundaries.reset();  // without a forecast
  CHECK(count_of(plan(options).call, ActionKind::send_boundary) == 0);
}

TEST_CASE("what stays is in the ledger to the byte, within every budget, and more in larger ones") {
  for (std::size_t const devices : {1U, 2U, 3U}) {
    auto kinds = kinds_of_plans(devices);
    std::ranges::copy(kinds_of_peer_plans(devices), std::back_inserter(kinds));
    for (auto options : kinds) {
      auto const all = plan(options).stages;
      auto const peers = std::exchange(options.peer_boundaries, std::nullopt);
      options.resident_boundaries.reset();  // without a forecast, nothing stays
      auto const none = plan(options).stages;
      CHECK(none.resident.empty());
      auto const& room = all.memory.resident;
      auto const added = room.checkpoints.entry_bytes * room.checkpoints.count +
                         room.gradients.entry_bytes * room.gradients.count;
      CHECK(all.memory.bytes == none.memory.bytes + added);
      options.resident_boundaries = true;
      options.peer_boundaries = peers;
      std::size_t most = 0;
      for (auto bytes = none.memory.bytes; bytes <= all.memory.bytes; bytes += 256) {
        options.device_memory = bytes;
        auto const graphs = plan(options);
        auto const& stages = graphs.stages;
        CHECK(stages.memory.bytes <= bytes);
        for (auto const kind : ResidentLayout::kinds) {
          CHECK(stages.memory.resident.of(kind).count == most_rings_of_a_device(graphs, kind));
        }
        CHECK(total_bytes(stages.memory.ledger(), LedgerLine::Space::device) ==
              stages.memory.bytes);
        CHECK(stages.resident.size() >= most);
        most = stages.resident.size();
        CHECK((bytes > none.memory.bytes || most == 0));
      }
      CHECK(most == all.resident.size());
    }
  }
}

TEST_CASE("a boundary stays where no other device reads it") {
  // Slots: layers 0 to 2 forward on device 0, the loss on device 1, then layer 2 backward on device
  // 0, which reads what layer 1 has made. Everything else goes from one device to the other.
  auto options = everything(2, 2, 1);
  options.checkpoints = Checkpoints::layers;
  auto const graphs = plan(options);
  CHECK(graphs.stages.resident ==
        ResidentBoundaries{{BufferKind::checkpoint, 1, 0}, {BufferKind::checkpoint, 1, 1}});
  for (auto const& action : graphs.call.actions) {
    for (auto const* list : {&action.reads, &action.writes}) {
      for (auto const& buffer : *list) {
        if (is_resident(buffer)) {
          CHECK(action.lane == Lane{LaneKind::compute, buffer.ring.device});
        }
      }
    }
  }
  CHECK(verify(sequence_of(graphs, issue_iterations(5, 1, true))).empty());
}

TEST_CASE("what an evaluation reads on another device goes through the host") {
  /// Trains on device 0 and evaluates on both.
  struct EvaluatesOnBoth {
    [[nodiscard]] DeviceTasks tasks(ScheduleShape shape) const {
      shape.devices = shape.backward_stages > 0 ? 1 : shape.devices;
      auto tasks = RoundRobinSchedule{}.tasks(shape);
      tasks.resize(2);
      return tasks;
    }
    [[nodiscard]] std::size_t advance(ScheduleShape const&) const { return 0; }
  };
  Training training;
  training.model.dense = 2;
  training.plan = everything(2, 2, 1);
  training.plan.checkpoints = Checkpoints::layers;
  auto const graphs = plan_training(training,
                                    EvaluatesOnBoth{},
                                    PriorityTransferEngine{},
                                    LayerEventProtocol{},
                                    OneForwardStage{});
  std::set<MadeBoundary> expected;  // but the boundary to the fused stage
  for (std::size_t m = 0; m < 2; ++m) {
    expected.insert({{BufferKind::checkpoint, 0, m}, {BufferKind::checkpoint, 1, m}});
    for (std::size_t layer = 0; layer < 3; ++layer) {
      expected.insert({BufferKind::boundary_gradient, layer, m});
    }
  }
  CHECK(graphs.stages.resident == expected);
  CHECK(verify(sequence_of(graphs, issue_iterations(3, 1, true))).empty());
}

TEST_CASE("gradients take turns: one more than there are micro-batches has room for all") {
  auto const stages = plan(everything(1, 4, 1), {.dense = 5}).stages;
  CHECK(stages.memory.resident.gradients.count == 5);
  auto few = everything(1, 4, 1);  // those that are read soonest come first
  auto const& room = stages.memory.resident;
  few.device_memory =
      stages.memory.bytes - room.checkpoints.entry_bytes * (room.checkpoints.count - 1);
  auto const kept = plan(few, {.dense = 5}).stages;
  CHECK(std::ranges::count(kept.resident, BufferKind::boundary_gradient, &MadeBoundary::kind) > 0);
  CHECK(kept.resident.size() < stages.resident.size());
}

TEST_CASE(
    "verify finds every place that is reused too early, and every boundary that nobody made") {
  std::size_t reused = 0;
  std::size_t unmade = 0;
  std::size_t harmless = 0;
  for (std::size_t const devices : {1U, 2U}) {
    for (auto const& options : kinds_of_plans(devices)) {
      auto const graphs = plan(options);
      auto const is_safe = [&](ActionGraph const& call) {
        auto changed = graphs;
        changed.call = call;
        return verify(sequence_of(changed, issue_iterations(3, 1, false)), 1).empty();
      };
      std::vector<Ring> rings;
      for (auto const& [ring, use] : graphs.call.rings) {
        if (is_resident({ring, 0})) {
          rings.push_back(ring);
        }
      }
      for (auto const& from : rings) {
        for (auto const& to : rings) {
          if (from == to || from.device != to.device) {
            continue;
          }
          auto const lives = lives_in(graphs.call, from);
          auto const others = lives_in(graphs.call, to);
          bool const overlap = std::ranges::any_of(lives, [&](auto const& life) {
            return std::ranges::any_of(others, [&](auto const& other) {
              return life.first <= other.second && other.first <= life.second;
            });
          });
          auto call = graphs.call;
          merge_rings(call, from, to);
          CHECK(is_safe(call) == !overlap);
          ++(overlap ? reused : harmless);
        }
      }
      for (std::size_t i = 0; i < graphs.call.actions.size(); ++i) {
        if (resident_write(graphs.call.actions[i]) != nullptr) {
          auto call = graphs.call;  // whose action i does not write the boundary
          std::erase_if(call.actions[i].writes, is_resident);
          CHECK_FALSE(is_safe(call));
          ++unmade;
        }
      }
    }
  }
  CHECK(reused > 0);
  CHECK(unmade > 0);
  MESSAGE(reused << " places reused too early, " << unmade << " boundaries that nobody made; "
                 << harmless << " places that could be one");
}

}  // namespace resident_rings_test
