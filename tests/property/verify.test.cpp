// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/graph/verify.hpp>

#include <roundpipe/memory/place_check.hpp>
#include <roundpipe/partition/partitioner.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/own_policies.hpp>
#include <support/property.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// Cuts layers at the drawn numbers, whether or not the stages fit the budget.
class GivenPartition {
 public:
  explicit GivenPartition(std::vector<std::size_t> cuts) : cuts_(std::move(cuts)) {}

  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    auto const layers = problem.costs.size();
    Partition partition;
    auto const cut = [&](std::size_t bit, std::size_t end, std::vector<LayerRange>& ranges) {
      std::size_t first = 0;
      for (std::size_t i = 1; i <= end; ++i) {
        if (i == end || (cuts_[i % cuts_.size()] >> bit) % 2 == 1) {
          ranges.push_back({first, i - first});
          first = i;
        }
      }
    };
    cut(1, layers, partition.backward);
    std::reverse(partition.backward.begin(), partition.backward.end());
    cut(0, partition.backward.front().first, partition.forward);
    for (auto const* ranges : {&partition.forward, &partition.backward}) {
      auto const direction =
          ranges == &partition.forward ? StageDirection::forward : StageDirection::backward;
      for (auto const& range : *ranges) {
        require(!problem.fits || problem.fits(direction, range),
                Errc::over_budget,
                "a given stage does not fit");
      }
    }
    return partition;
  }

 private:
  std::vector<std::size_t> cuts_;
};

/// Makes chunks from the drawn numbers, some of them gated: the halves of a tensor go into any
/// windows.
class GivenChunks {
 public:
  GivenChunks(std::vector<std::size_t> numbers, std::size_t in_flight)
      : numbers_(std::move(numbers)), in_flight_(in_flight) {}

  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors,
                                          std::size_t windows) const {
    std::vector<Chunk> chunks(windows);
    for (std::size_t w = 0; w < windows; ++w) {
      chunks[w].window = w;
      chunks[w].gated = numbers_[w % numbers_.size()] % 3 != 0;
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      auto const number = numbers_[(t + 1) % numbers_.size()];
      auto const half = tensors[t] / 2 / 4 * 4;
      chunks[number % windows].pieces.push_back({t, 0, half});
      chunks[(number / 7) % windows].pieces.push_back({t, half, tensors[t] - half});
    }
    std::erase_if(chunks, [](Chunk const& chunk) { return chunk.pieces.empty(); });
    return chunks;
  }
  [[nodiscard]] std::size_t activations_in_flight() const { return in_flight_; }

 private:
  std::vector<std::size_t> numbers_;
  std::size_t in_flight_;
};

static_assert(PartitionPolicy<GivenPartition>);
static_assert(TransferPolicy<GivenChunks>);

Training any_training() {
  Training training;
  auto& model = training.model;
  model.dense = any_number("dense", 0, 4);
  model.crosses = any_number("crosses", 0, 2);
  model.drops = any_flag("drops");
  model.tied = any_flag("tied");
  model.frozen_dense = any_number("frozen dense", 0, 2);
  model.dense_tied = model.frozen_dense == 0 && any_flag("dense tied");
  model.frozen_input = any_flag("frozen input");
  model.empty_parameters = any_flag("empty parameters");
  if (any_flag("bf16")) {
    model.types = {5, DType::bf16, DType::bf16};
  }
  training.plan.devices = any_number("devices", 1, 5);
  training.plan.micro_batches_per_round = any_number("micro-batches", 1, 5);
  training.plan.rounds = any_number("rounds", 1, 3);
  if (any_flag("keeps all")) {
    training.plan.checkpoints = Checkpoints::layers;
    auto const any_levels = [&] {  // of the first layers, which are those that save
      std::vector<std::vector<std::size_t>> levels;
      for (std::size_t layer = 0; layer < 1 + model.dense; ++layer) {
        auto& of_layer = levels.emplace_back();
        for (std::size_t m = 0; m < training.plan.micro_batches_per_round; ++m) {
          of_layer.push_back(layer == 0 ? 0 : any_number("level", 0, 2));
        }
      }
      return levels;
    };
    training.plan.save_levels = any_levels();
    for (auto const round : {std::size_t{0}, training.plan.rounds - 1}) {
      if (any_flag("round differs")) {
        training.plan.levels_of_rounds[round] = any_levels();
      }
    }
  }
  training.plan.overlaps_rounds = any_flag("overlaps");
  training.plan.resident_boundaries = any_flag("resident boundaries");
  training.plan.resident_parameters = any_flag("resident parameters");
  training.plan.reaches_peers = any_flag("peers");
  training.plan.peer_boundaries = training.plan.reaches_peers;
  training.evaluated = any_number("evaluated", 1, training.plan.micro_batches_per_round);
  training.step.measures_gradients = any_flag("measures gradients");
  training.step.waits_for_all = any_flag("waits for all");
  training.step.reads_master = any_flag("reads master");
  return training;
}

/// Calls, steps, evaluations and synchronizations as a user mixes them.
std::vector<Issue> any_issues(bool several_calls) {
  std::vector<Issue> issues;
  bool has_gradients = false;
  auto const count = any_number("issues", 6, 16);
  for (std::size_t i = 0; i < count; ++i) {
    using enum Issue;
    switch (any_number("issue", 0, 9)) {
      case 0:
        issues.insert(issues.end(), {flush, synchronize, evaluation});
        break;
      case 1:
        issues.insert(issues.end(), {flush, synchronize});
        break;
      default:
        // A step needs gradients; more than one call only where gradients are summed.
        if (has_gradients && (!several_calls || any_flag("steps"))) {
          issues.push_back(step);
          has_gradients = false;
        } else {
          issues.push_back(call);
          has_gradients = true;
        }
    }
  }
  return issues;
}

std::size_t graphs_checked = 0;
std::size_t actions_checked = 0;

template <class S, class T, class E, class P>
void check_safe(Training training,
                S const& schedule,
                T const& transfers,
                E const& protocol,
                P const& partitioner) {
  auto const budget = any_number("budget", 0, 3);
  if (budget > 0) {  // 1: the smallest budget
    auto const smallest =
        smallest_device_memory(training, schedule, transfers, protocol, partitioner);
    training.plan.device_memory = smallest + (budget - 1) * smallest / 4;
  }
  auto const graphs = plan_training(training, schedule, transfers, protocol, partitioner);
  auto const issues = any_issues(training.calls > 1);
  auto const sequence = sequence_of(graphs, issues);
  auto const actions = sequence.unroll();
  SequenceOrder const order(actions);
  auto violations = verify(actions, order, 3);
  auto const& stages = graphs.stages;
  auto const apart = verify_places(actions, order, stages.memory, [&](ActionGraph const& graph) {
    return std::span<StageLayout const>(&graph == &graphs.evaluation ? stages.evaluate
                                                                     : stages.train);
  });
  violations.insert(violations.end(), apart.begin(), apart.end());
  for (auto const& violation : violations) {
    RC_LOG() << violation.text << '\n';
  }
  RC_ASSERT(violations.empty());
  graphs_checked += issues.size();
  actions_checked += actions.size();
}

template <class S, class T, class E>
void choose_partition(Training const& training,
                      S const& schedule,
                      T const& transfers,
                      E const& protocol) {
  if (any_flag("given partition")) {
    auto const cuts =
        *rc::gen::container<std::vector<std::size_t>>(7, rc::gen::inRange<std::size_t>(0, 4))
             .as("cuts");
    check_safe(training, schedule, transfers, protocol, GivenPartition(cuts));
  } else {
    check_safe(training, schedule, transfers, protocol, Partitioner{});
  }
}

template <class S, class T>
void choose_protocol(Training const& training, S const& schedule, T const& transfers) {
  EventProtocolOptions const options{static_cast<int>(any_number("staleness", 0, 1)),
                                     any_number("master copies", 1, 2),
                                     any_number("gradient buffers", 1, 2)};
  if (any_flag("blocking")) {
    choose_partition(training, schedule, transfers, BlockingProtocol(options));
  } else {
    choose_partition(training, schedule, transfers, LayerEventProtocol(options));
  }
}

template <class S>
void choose_transfers(Training const& training, S const& schedule) {
  switch (any_number("transfers", 0, 3)) {
    case 0:
      return choose_protocol(training, schedule, CopyAtOnce{});
    case 1:
      return choose_protocol(training, schedule, UnplannedTransfers{});
    case 2: {
      auto const numbers =
          *rc::gen::container<std::vector<std::size_t>>(6, rc::gen::inRange<std::size_t>(0, 50))
               .as("chunks");
      return choose_protocol(
          training, schedule, GivenChunks(numbers, any_number("in flight", 1, 3)));
    }
    default:
      return choose_protocol(
          training, schedule, PriorityTransferEngine(any_number("in flight", 1, 3)));
  }
}

/// Fails the test case unless \p testable holds \p times times, times ROUNDPIPE_TEST_CASES.
template <class Testable>
void check_cases(int times, Testable&& testable) {
  auto const* const factor = std::getenv("ROUNDPIPE_TEST_CASES");
  auto params = rc::detail::configuration().testParams;
  params.maxSuccess = times * (factor == nullptr ? 1 : std::atoi(factor));
  auto const result = rc::detail::checkTestable(
      std::forward<Testable>(testable), rc::detail::TestMetadata{}, params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  INFO(message.str());
  CHECK(result.template is<rc::detail::SuccessResult>());
}

}  // namespace

TEST_CASE("no plan of any model, policies, sizes and modes violates a rule, in any sequence") {
  check_cases(2000, [] {
    auto training = any_training();
    training.calls = any_number("calls", 1, 2);
    if (any_flag("looped")) {
      choose_transfers(training, LoopedBfs{});
    } else {
      choose_transfers(training, RoundRobinSchedule{});
    }
  });
  std::cout << graphs_checked << " graphs, " << actions_checked << " actions\n";
}
