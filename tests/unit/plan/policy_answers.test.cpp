// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/sequential.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/made_model.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace policy_answers_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr auto none = static_cast<std::size_t>(-1);

/// What a case changes of right answers.
struct Changes {
  std::function<void(DeviceTasks&)> tasks = {};
  std::size_t advance = 0;
  std::function<void(std::vector<Chunk>&)> chunks = {};
  std::size_t activations_in_flight = 2;
  std::function<void(std::vector<BlockEvent>&)> before = {};
  int staleness = 1;
  std::size_t master_copies = 2;
  std::size_t gradient_buffers = 1;
  std::function<void(Partition&)> partition = {};
};

template <class F, class T>
T changed(F const& change, T answer) {
  if (change) {
    change(answer);
  }
  return answer;
}

struct AnySchedule {
  Changes changes;
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const {
    return changed(changes.tasks, RoundRobinSchedule{}.tasks(shape));
  }
  [[nodiscard]] std::size_t advance(ScheduleShape const&) const { return changes.advance; }
};
struct AnyTransfers {
  Changes changes;
  [[nodiscard]] std::vector<Chunk> chunks(std::span<Bytes const> tensors,
                                          std::size_t windows) const {
    return changed(changes.chunks, PriorityTransferEngine{}.chunks(tensors, windows));
  }
  [[nodiscard]] std::size_t activations_in_flight() const { return changes.activations_in_flight; }
};
struct AnyProtocol {
  Changes changes;
  [[nodiscard]] std::vector<BlockEvent> before(BlockEvent action, std::size_t blocks) const {
    return changed(changes.before, LayerEventProtocol{}.before(action, blocks));
  }
  [[nodiscard]] int staleness() const { return changes.staleness; }
  [[nodiscard]] std::size_t master_copies() const { return changes.master_copies; }
  [[nodiscard]] std::size_t gradient_buffers() const { return changes.gradient_buffers; }
};
/// Of four layers, two forward stages (0 and 1), a fused one (2) and two backward ones (3 and 4).
struct AnyPartition {
  Changes changes;
  [[nodiscard]] Partition partition(PartitionProblem const&) const {
    return changed(changes.partition, Partition{{{0, 2}, {2, 1}}, {{3, 1}, {1, 2}, {0, 1}}});
  }
};

/// Which rule an answer breaks, and what the message says of its value.
struct Broken {
  char const* answer;
  int rule;
  std::string value;
  Errc code = Errc::invalid_argument;
};

void check_error(Error const& error, Broken const& broken) {
  CAPTURE(error.message());
  CHECK(error.code() == broken.code);
  CHECK(contains(error.message(),
                 broken.answer + (" breaks rule " + std::to_string(broken.rule)) + ": "));
  CHECK(contains(error.message(), broken.value));
}

PipelineOptions options_of(std::size_t rounds) {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 2;
  options.rounds = rounds;
  options.devices = 2;
  options.device_memory = 1_MiB;
  options.host_memory = 64_MiB;
  options.costs = CostSource::estimated;
  return options;
}

/// What `Planner`, `Pipeline` and `automatic` say of policies with \p changes.
std::vector<Error> answers_to(Changes const& changes, std::size_t rounds = 1) {
  auto const model = toy_model({.dense = 2});
  AnySchedule const schedule{changes};
  AnyTransfers const transfers{changes};
  AnyProtocol const protocol{changes};
  AnyPartition const partition{changes};
  auto const options = options_of(rounds);
  HostBackend backend{{.devices = 2}};
  auto const plan_all = [&] {
    auto const facts = describe(model, options.capacity);
    auto const blocks = form_blocks(facts, rounds > 1);
    CostModel const costs(std::vector<LayerCost>(facts.size(), LayerCost{1, 2}));
    Planner const planner{schedule, transfers, protocol, partition};
    auto sizes = plan_options(options);
    sizes.device_memory = options.device_memory;
    auto const plan = planner.plan_stages(facts, blocks, costs, sizes);
    (void)planner.streamed_graph(blocks, plan, sizes);
    (void)planner.step_graph(blocks, {});
  };
  Policies const policies{schedule, transfers, protocol, partition};
  auto const make_pipeline = [&] { Pipeline{model, Sgd{}, backend, options, policies}; };
  auto const choose = [&] {
    BatchCut const cut{2, 2, rounds};
    BatchShape const batch{static_cast<std::int64_t>(4 * rounds), 3};
    (void)automatic(model, Sgd{}, backend, options, batch, cut, policies);
  };
  return {error_of(plan_all), error_of(make_pipeline), error_of(choose)};
}

void check_refused(Changes const& changes, Broken const& broken, std::size_t rounds = 1) {
  for (auto const& error : answers_to(changes, rounds)) {
    check_error(error, broken);
  }
}

void check_tasks(int rule,
                 std::string const& value,
                 std::function<void(DeviceTasks&)> change,
                 Errc code = Errc::invalid_argument,
                 std::size_t rounds = 1) {
  check_refused({.tasks = std::move(change)}, {"Schedule::tasks", rule, value, code}, rounds);
}

void check_chunks(std::string const& value, std::function<void(std::vector<Chunk>&)> change) {
  check_refused({.chunks = std::move(change)}, {"TransferPolicy::chunks", 1, value});
}

void check_events(std::string const& value, BlockEvent event) {
  auto const add = [event](std::vector<BlockEvent>& events) { events.push_back(event); };
  check_refused({.before = add}, {"EventProtocol::before", 1, value});
}

void check_partition(std::string const& value, Partition const& answer) {
  auto const change = [&](Partition& partition) { partition = answer; };
  check_refused({.partition = change}, {"PartitionPolicy::partition", 1, value});
}

}  // namespace

TEST_CASE("right answers make a plan, a pipeline and a choice") {
  for (std::size_t const rounds : {1, 2}) {
    for (auto const& error : answers_to({}, rounds)) {
      CHECK(error.message() == "nothing was thrown");
    }
  }
}

TEST_CASE("tasks that break a rule are refused") {
  // Device 0 runs stages 0, 2 (fused) and 4, device 1 runs 1 and 3, two micro-batches each.
  check_tasks(1, "1 lists for 2 devices", [](auto& tasks) { tasks.pop_back(); });
  check_tasks(1, "3 lists for 2 devices", [](auto& tasks) { tasks.emplace_back(); });
  check_tasks(1, "0 lists for 2 devices", [](auto& tasks) { tasks.clear(); });
  check_tasks(1,
              "stage 5 for micro-batch 0 of round 0 on device 0, in a call of 5 stages",
              [](auto& tasks) { tasks[0][0].stage = StageId(5); });
  check_tasks(1, "stage -1 ", [](auto& tasks) { tasks[0][0].stage = StageId::none(); });
  check_tasks(1, "of round 1 on device 0", [](auto& tasks) { tasks[0][0].round = RoundId(1); });
  check_tasks(1, "of round -1 ", [](auto& tasks) { tasks[0][0].round = RoundId::none(); });
  check_tasks(1, "micro-batch 2 ", [](auto& tasks) { tasks[0][1].micro_batch = MicroBatchId(2); });
  check_tasks(
      1, "micro-batch -1 ", [](auto& tasks) { tasks[0][1].micro_batch = MicroBatchId::none(); });
  check_tasks(1, "the task of kind 9 of stage 0", [](auto& tasks) {
    tasks[0][0].kind = static_cast<TaskKind>(9);
  });
  check_tasks(1,
              "the backward of stage 0 for micro-batch 0 of round 0 on device 0, which is no",
              [](auto& tasks) { tasks[0][0].kind = TaskKind::backward; });
  check_tasks(
      1, "the recompute of stage 2", [](auto& tasks) { tasks[0][2].kind = TaskKind::recompute; });
  check_tasks(1, "stage 0 lacks a task for micro-batch 0 of round 0", [](auto& tasks) {
    tasks[0].erase(tasks[0].begin());
  });
  check_tasks(1, "stage 1 lacks a task", [](auto& tasks) { tasks[1].clear(); });
  check_tasks(
      1, "stage 4 lacks a task for micro-batch 1", [](auto& tasks) { tasks[0].pop_back(); });
  check_tasks(1,
              "the forward of stage 0 for micro-batch 0 of round 0 on device 1 does again",
              [](auto& tasks) { tasks[1].push_back(tasks[0][0]); });
  check_tasks(1,
              "the backward of stage 3 for micro-batch 0 of round 0 on device 1 does not come",
              [](auto& tasks) { std::swap(tasks[1][2], tasks[1][3]); });
  check_tasks(1,
              "the backward of stage 3 for micro-batch 1 of round 0 on device 0 does not come",
              [](auto& tasks) {  // recomputed on device 1, which is listed later
                tasks[0].push_back(tasks[1].back());
                tasks[1].pop_back();
              });
  check_tasks(1, "the input gradient of stage 4", [](auto& tasks) {
    tasks[0].push_back(tasks[0].back());
    tasks[0].back().kind = TaskKind::input_gradient;  // besides the whole backward
  });
  check_tasks(1,
              "the weight gradient of stage 4 for micro-batch 1 of round 0 on device 0 does not",
              [](auto& tasks) { tasks[0].back().kind = TaskKind::weight_gradient; });
  check_tasks(3, "device 0 waits forever with stage 2 of round 0", [](auto& tasks) {
    std::rotate(tasks[0].begin(), tasks[0].begin() + 2, tasks[0].begin() + 4);
  });
  check_tasks(
      4,
      "the forward of stage 0 for micro-batch 0 of round 0 is due on device 0, not the "
      "forward of stage 0 for micro-batch 1",
      [](auto& tasks) { std::swap(tasks[0][0], tasks[0][1]); },
      Errc::unsupported);
  check_tasks(
      4,
      "not the fused task of stage 2",
      [](auto& tasks) { std::swap(tasks[0][1], tasks[0][2]); },
      Errc::unsupported);
  check_tasks(
      4,
      "not the input gradient of stage 4",
      [](auto& tasks) {
        tasks[0].back().kind = TaskKind::input_gradient;
        tasks[0].push_back(tasks[0].back());
        tasks[0].back().kind = TaskKind::weight_gradient;
      },
      Errc::unsupported);
  check_tasks(
      4,
      "stage 0 runs round 0 after round 1",
      [](auto& tasks) {
        for (auto& list : tasks) {
          for (auto& task : list) {
            task.round = RoundId(1 - task.round.value());
          }
        }
      },
      Errc::unsupported,
      2);
}

TEST_CASE("an advance by all devices, or by a negative number, is refused") {
  check_refused({.advance = 2}, {"Schedule::advance", 2, "it is 2 with 2 devices"});
  check_refused({.advance = none}, {"Schedule::advance", 2, std::to_string(none)});
}

TEST_CASE("chunks that break a rule are refused") {
  check_chunks("chunk 0 in window 2 of 2", [](auto& chunks) { chunks.front().window = 2; });
  check_chunks("chunk 0 in window " + std::to_string(none),
               [](auto& chunks) { chunks.front().window = none; });
  check_chunks("chunk 1 in window 0 comes after one in window 1",
               [](auto& chunks) { std::reverse(chunks.begin(), chunks.end()); });
  check_chunks("in window 0 comes after one in window 1",
               [](auto& chunks) { chunks.push_back({{}, 0, true}); });
  check_chunks("of tensor 99 from byte 0 on, but the slot has",
               [](auto& chunks) { chunks.front().pieces.front().tensor = 99; });
  check_chunks("0 bytes of tensor 99",
               [](auto& chunks) { chunks.front().pieces.push_back({99, 0, 0}); });
  check_chunks("are covered so far", [](auto& chunks) {  // a piece twice
    chunks.back().pieces.push_back(chunks.front().pieces.front());
  });
  check_chunks("from byte 4 on, but its first 0 of",
               [](auto& chunks) { chunks.front().pieces.front().offset += 4; });
  check_chunks("from byte " + std::to_string(none) + " on",
               [](auto& chunks) { chunks.front().pieces.front().offset = none; });
  check_chunks(std::to_string(none) + " bytes of tensor",
               [](auto& chunks) { chunks.front().pieces.front().bytes = none; });
  check_chunks("are in no chunk", [](auto& chunks) { chunks.front().pieces.front().bytes -= 4; });
  check_chunks("bytes of tensor 0 are in no chunk", [](auto& chunks) { chunks.clear(); });
  check_chunks("from byte 0 on, but its first 32 of 64 bytes",
               [](auto& chunks) {  // as many bytes as there are
                 auto& piece = chunks.front().pieces.front();
                 piece.bytes /= 2;
                 chunks.front().pieces.push_back(piece);
               });
}

TEST_CASE("numbers of activations in flight that cannot be are refused") {
  for (auto const count : {std::size_t{0}, std::size_t{1025}, none}) {
    check_refused({.activations_in_flight = count},
                  {"TransferPolicy::activations_in_flight",
                   2,
                   "it is " + std::to_string(count) + ", not 1 to 1024"});
  }
}

TEST_CASE("events that there are not are refused") {
  using enum BlockEventKind;
  check_events("an event of kind 0 on block -1", {BlockId::none(), upload});
  check_events("an event of kind 1 on block 4", {BlockId(4), gradient_write});
  check_events("an event of kind 4 on block 0",
               {BlockId(0), static_cast<BlockEventKind>(block_event_kind_count)});
  check_events("age 3", {BlockId(0), parameter_copy, 3});
  check_events("age " + std::to_string(none), {BlockId(0), parameter_copy, none});
}

TEST_CASE("a staleness, master copies and gradient buffers that cannot be are refused") {
  for (int const staleness : {-1, 2}) {
    check_refused({.staleness = staleness},
                  {"EventProtocol::staleness", 2, "it is " + std::to_string(staleness)});
  }
  for (auto const count : {std::size_t{0}, std::size_t{3}, none}) {
    auto const value = "it is " + std::to_string(count);
    check_refused({.master_copies = count}, {"EventProtocol::master_copies", 3, value});
    check_refused({.gradient_buffers = count}, {"EventProtocol::gradient_buffers", 4, value});
  }
}

TEST_CASE("partitions that break a rule are refused") {
  std::vector<LayerRange> const forward{{0, 2}, {2, 1}};
  std::vector<LayerRange> const backward{{3, 1}, {1, 2}, {0, 1}};
  check_partition("there is no backward stage", {});
  check_partition("there is no backward stage", {{{0, 4}}, {}});
  check_partition("forward stage 1 holds 0 layers from layer 2 on",
                  {{{0, 2}, {2, 0}, {2, 1}}, backward});
  check_partition("forward stage 1 holds 2 layers from layer 3 on", {{{0, 3}, {3, 2}}, backward});
  check_partition("forward stage 0 holds 9 layers", {{{0, 9}}, backward});
  check_partition("forward stage 1 holds " + std::to_string(none), {{{0, 2}, {2, none}}, backward});
  check_partition("forward stage 0 holds 2 layers from layer 1 on", {{{1, 2}}, backward});
  check_partition("forward stage 0 holds 1 layers from layer 2 on, but must begin with layer 0",
                  {{{2, 1}, {0, 2}}, backward});
  check_partition("forward stage 1 holds 2 layers from layer 1 on, but must begin with layer 2",
                  {{{0, 2}, {1, 2}}, backward});
  check_partition("backward stage 0 holds 1 layers from layer 3 on, but must begin with layer 2",
                  {{{0, 2}}, backward});
  check_partition("backward stage 0 holds 1 layers from layer 3 on, but must begin with layer 4",
                  {{{0, 2}, {2, 2}}, backward});
  check_partition("backward stage 0 holds 2 layers from layer 3 on",
                  {forward, {{3, 2}, {1, 2}, {0, 1}}});
  check_partition("backward stage 0 holds " + std::to_string(none), {forward, {{3, none}}});
  check_partition("backward stage 1 holds 0 layers from layer 3 on",
                  {forward, {{3, 1}, {3, 0}, {0, 3}}});
  check_partition("backward stage 1 holds 1 layers from layer 0 on, but must end before layer 3",
                  {forward, {{3, 1}, {0, 1}, {1, 2}}});
  check_partition("backward stage 1 holds 3 layers from layer 1 on", {forward, {{3, 1}, {1, 3}}});
  check_partition("backward stage 2 holds 2 layers from layer 0 on, but must end before layer 1",
                  {forward, {{3, 1}, {1, 2}, {0, 2}}});
  check_partition("the last backward stage begins with layer 1", {forward, {{3, 1}, {1, 2}}});
}

TEST_CASE("a number of state arrays that breaks the rule is refused") {
  struct AnyOptimizer {
    int count;
    [[nodiscard]] int state_arrays() const { return count; }
    void update(UpdateContext const&,
                HostSpan<float>,
                HostSpan<float const>,
                std::span<HostSpan<float> const>) const {}
  };
  auto const model = toy_model({.dense = 2});
  HostBackend backend{{.devices = 2}};
  auto const options = options_of(1);
  for (auto const& [count, value] : {std::pair{-1, none}, std::pair{9, std::size_t{9}}}) {
    Broken const broken{"Optimizer::state_arrays", 1, "it is " + std::to_string(value)};
    AnyOptimizer const optimizer{count};
    check_error(error_of([&] { Pipeline{model, optimizer, backend, options}; }), broken);
    check_error(error_of([&] { (void)automatic(model, optimizer, backend, options, {4, 3}); }),
                broken);
    check_error(
        error_of([&] { SerialTrainer{model, optimizer, SerialOptions{.capacity = {2, 3}}}; }),
        broken);
  }
  CHECK_NOTHROW(Pipeline{model, AnyOptimizer{8}, backend, options});
}

namespace {

/// A loss layer whose tables a case changes.
struct AnyLayer {
  ParameterTable own = {{{"w", {4}}}, {{"b", {4}}}};
  std::function<TensorTable()> in = {};
  std::function<TensorTable()> out = {};
  std::function<TensorTable()> side = {};
  std::function<TensorTable()> told = {};
  Footprint needs = {};
  FlopCount flops = {};
  std::vector<Bytes> levels = {};
  std::function<ParameterTable()> throwing = {};
  std::int64_t terms = 1;

  [[nodiscard]] static TensorTable table(std::function<TensorTable()> const& answer) {
    return answer ? answer() : TensorTable{};
  }
  [[nodiscard]] ParameterTable parameters() const { return throwing ? throwing() : own; }
  [[nodiscard]] TensorTable input(BatchShape) const { return table(in); }
  [[nodiscard]] TensorTable boundary(BatchShape) const { return table(out); }
  [[nodiscard]] TensorTable side_inputs(BatchShape) const { return table(side); }
  [[nodiscard]] TensorTable results(BatchShape) const { return table(told); }
  [[nodiscard]] Footprint footprint(BatchShape) const { return needs; }
  [[nodiscard]] FlopCount work(BatchShape) const { return flops; }
  [[nodiscard]] std::vector<Bytes> save_levels(BatchShape) const { return levels; }
  [[nodiscard]] std::int64_t loss_terms(std::span<HostTensor const>, BatchShape) const {
    return terms;
  }
  [[nodiscard]] std::string name() const { return "any"; }
  void forward(auto& /*ctx*/) const {}
  void backward(auto& /*ctx*/) const {}
};

/// Checks what `describe` and `Pipeline` say of \p layer.
void check_layer(AnyLayer const& layer,
                 std::string const& member,
                 std::string const& value,
                 int rule = 9) {
  Sequential const model{layer};
  auto const answer = "layer 0 (any): Layer::" + member;
  Broken const broken{answer.c_str(), rule, value};
  check_error(error_of([&] { return describe(model, {2, 3}); }), broken);
  HostBackend backend{{.devices = 2}};
  check_error(error_of([&] { Pipeline{model, Sgd{}, backend, options_of(1)}; }), broken);
}

}  // namespace

TEST_CASE("layers that break a rule are refused") {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  CHECK(describe(Sequential{AnyLayer{}}, {2, 3}).size() == 1);
  check_layer({.own = {{{"w", {4}}}, {{"w", {5}}}}}, "parameters", "two parameters are called 'w'");
  check_layer({.own = {{{"w", {most, 4}}}}}, "parameters", "'w' [9223372036854775807, 4]");
  check_layer({.own = {{{"w", {most, most, 4}}}}}, "parameters", "more than 281474976710656 bytes");
  check_layer({.own = {{{"w", {std::int64_t{1} << 46}}}, {{"b", {1}}}}}, "parameters", "'b' [1]");
  TensorTable const large{{"t", {std::int64_t{1} << 62, 4}}};  // 2^66 bytes are 0 in 64 bits
  auto const too_large = [&] { return large; };
  auto const negative = []() -> TensorTable { return {{"t", {2, -3}}}; };
  check_layer({.throwing = []() -> ParameterTable { return {{{"w", {-4}}}}; }},
              "parameters",
              "extent 0 of a shape is -4");
  check_layer({.throwing = []() -> ParameterTable { throw std::runtime_error("no table"); }},
              "parameters",
              "no table");
  check_layer({.throwing = []() -> ParameterTable { throw 5; }},
              "parameters",
              "an exception that is not a std::exception");
  check_layer({.in = negative}, "input", "extent 1 of a shape is -3");
  check_layer({.out = negative}, "boundary", "extent 1 of a shape is -3");
  check_layer({.side = negative}, "side_inputs", "extent 1 of a shape is -3");
  check_layer({.told = negative}, "results", "extent 1 of a shape is -3");
  check_layer({.in = too_large}, "input", "'t' [4611686018427387904, 4]");
  check_layer({.out = too_large}, "boundary", "'t' [4611686018427387904, 4]");
  check_layer({.side = too_large}, "side_inputs", "'t' [4611686018427387904, 4]");
  check_layer({.told = too_large}, "results", "'t' [4611686018427387904, 4]");
  check_layer({.needs = {.saved_bytes = none}, .levels = {none}},
              "footprint",
              "saved_bytes of " + std::to_string(none));
  check_layer({.needs = {.workspace_bytes = none}},
              "footprint",
              "workspace_bytes of " + std::to_string(none));
  check_layer({.flops = {.forward_flops = -1}}, "work", "-1.0");
  check_layer(
      {.flops = {.backward_flops = std::numeric_limits<double>::quiet_NaN()}}, "work", "nan");
  check_layer(
      {.flops = {.replay_flops = {std::numeric_limits<double>::infinity()}}}, "work", "inf");
  check_layer({.needs = {.saved_bytes = 512}, .levels = {256}}, "save_levels", "saves: 256", 10);
  check_layer(
      {.needs = {.saved_bytes = 512}, .levels = {512, 256, 512}}, "save_levels", "512 256 512", 10);
  check_layer({.needs = {.saved_bytes = 512}, .levels = {100, 512}}, "save_levels", "100 512", 10);
}

TEST_CASE("loss terms that cannot be added up over micro-batches are refused") {
  for (auto const terms : {std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}}) {
    Sequential const model{AnyLayer{.terms = terms}};
    Broken const broken{"layer 0 (any): Layer::loss_terms", 13, "it is " + std::to_string(terms)};
    HostBackend backend{{.devices = 2}};
    Pipeline pipeline{model, Sgd{}, backend, options_of(1)};
    SerialTrainer serial{
        model, Sgd{}, SerialOptions{.capacity = {2, 3}, .micro_batches_per_round = 2}};
    Batch const two(2, {2, 3});
    check_error(error_of([&] { pipeline.forward_backward(two); }), broken);
    check_error(error_of([&] { (void)pipeline.evaluate(two); }), broken);
    check_error(error_of([&] { serial.forward_backward(two); }), broken);
  }
}

TEST_CASE("a model without layers is refused") {
  MadeModel<AnyLayer> const model;
  Broken const broken{"Model::layer_count", 1, "it is 0"};
  HostBackend backend{{.devices = 2}};
  auto const options = options_of(1);
  check_error(error_of([&] { return describe(model, {2, 3}); }), broken);
  check_error(error_of([&] { Pipeline{model, Sgd{}, backend, options}; }), broken);
  check_error(error_of([&] { (void)automatic(model, Sgd{}, backend, options, {4, 3}); }), broken);
  check_error(error_of([&] { SerialTrainer{model, Sgd{}, SerialOptions{.capacity = {2, 3}}}; }),
              broken);
}

}  // namespace policy_answers_test
