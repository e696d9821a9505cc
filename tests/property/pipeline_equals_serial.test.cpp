// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/plan/planner.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <support/any_optimizer.hpp>
#include <support/own_policies.hpp>
#include <support/pipeline_runs.hpp>
#include <support/posted_calls.hpp>
#include <support/property.hpp>
#include <support/smallest_budget.hpp>
#include <support/toy_model.hpp>
#include <support/toy_skips.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// How much memory a device has.
enum class Budget { loose, between, smallest, one_stage };

/// One training.
struct Mix {
  std::size_t devices = 1;
  std::size_t layers = 1;
  std::size_t micro_batches_per_round = 1;
  std::size_t rounds = 1;
  std::size_t calls = 1;  ///< In each step.
  std::size_t steps = 3;
  /// Which boundaries the host keeps; and of each layer and micro-batch, if chosen, a level.
  Checkpoints checkpoints = Checkpoints::stages;
  bool levels = false;
  bool overlaps = false;       ///< Rounds overlap.
  bool first_differs = false;  ///< The first round has levels of its own,
  bool last_differs = false;   ///< or the last one.
  bool resident = false;       ///< Boundaries stay on devices.
  bool peers = false;          ///< Boundaries go from device to device.
  bool keeps_blocks = false;   ///< Parameters stay on devices.
  std::size_t evaluated = 0;   ///< Micro-batches in an evaluation after the first step, if any.
  std::size_t optimizer_threads = 1;
  int staleness = 0;
  Budget budget = Budget::loose;
  DType dtype = DType::f32;
  std::size_t master_copies = 2;
  std::size_t gradient_buffers = 1;
  bool declared_state = false;   ///< The optimizer keeps everything in the parameters' type.
  bool scales = false;           ///< Scales the loss, by a factor that overflows f16 at first.
  bool starts_with_all = false;  ///< No update begins before the last gradient.
  bool frozen = false;           ///< Some layers are frozen.
  bool empty = false;            ///< Toy layers have a parameter without elements, too.
  bool tied = false;
  bool drops = false;
  bool clips = false;
  bool adam = false;
  bool delays = false;  ///< On all lanes, most of them on one lane.
  std::optional<LaneKind> slow_lane{};
  bool varied = false;   ///< Micro-batches differ in their extents.
  bool watched = false;  ///< The test reads the weights after each step.
  bool ahead = false;    ///< Posts a call before it takes the loss of the one before.
  std::uint64_t seed = 0;
};

Mix any_mix() {
  Mix mix;
  mix.devices = any_number("devices", 1, 5);
  mix.layers = any_number("layers", 1, 9);
  mix.micro_batches_per_round = any_number("micro-batches", 1, 6);
  mix.rounds = any_number("rounds", 1, 3);
  mix.checkpoints = any_flag("keeps all") ? Checkpoints::layers : Checkpoints::stages;
  mix.levels = mix.checkpoints == Checkpoints::layers && any_flag("keeps saves");
  mix.overlaps = mix.rounds > 1 && any_flag("overlaps");
  mix.first_differs = mix.levels && any_flag("first round differs");
  mix.last_differs = mix.levels && any_flag("last round differs");
  mix.resident = any_flag("resident boundaries");
  mix.peers = any_flag("peers");
  mix.keeps_blocks = any_flag("resident parameters");
  mix.calls = any_number("calls", 1, 2);
  mix.evaluated = any_flag("evaluates") ? any_number("evaluated", 1, 8) : 0;
  mix.optimizer_threads = any_number("optimizer threads", 1, 3);
  mix.staleness = static_cast<int>(any_number("staleness", 0, 1));
  mix.budget = static_cast<Budget>(any_number("budget", 0, 2));
  mix.dtype = std::array{DType::f32, DType::bf16, DType::f16}[any_number("type", 0, 2)];
  mix.master_copies = any_number("master copies", 1, 2);
  mix.gradient_buffers = any_number("gradient buffers", 1, 2);
  mix.declared_state = mix.dtype != DType::f16 && any_flag("declared state") &&
                       (mix.master_copies == 2 || mix.staleness == 0);
  mix.scales = mix.dtype == DType::f16 || any_flag("scales");
  mix.starts_with_all = any_flag("starts with all");
  mix.frozen = any_flag("frozen");
  mix.empty = any_flag("empty");
  mix.tied = any_flag("tied");
  mix.drops = any_flag("drops");
  mix.clips = any_flag("clips");
  mix.adam = any_flag("adam");
  mix.varied = any_flag("varied");
  mix.watched = any_flag("watched");
  mix.ahead = any_flag("posts ahead");
  mix.seed = any_number("seed", 0, 999);
  return mix;
}

/// Fails the test case unless \p testable holds \p times times.
template <class Testable>
void check_times(int times, Testable&& testable) {
  auto params = rc::detail::configuration().testParams;
  params.maxSuccess = times;
  check_property(std::forward<Testable>(testable), params);
}

/// The same in 60 cases, or in as many as ROUNDPIPE_TEST_CASES says.
template <class Testable>
void check_cases(Testable&& testable) {
  auto const* const cases = std::getenv("ROUNDPIPE_TEST_CASES");
  check_times(cases == nullptr ? 60 : std::atoi(cases), std::forward<Testable>(testable));
}

/// Pauses of up to 300 us before one piece of work in eight, drawn from \p seed for each lane, and
/// before every piece on the lanes of kind \p slow, if any.
auto random_delays(std::uint64_t seed, std::optional<LaneKind> slow) {
  constexpr std::size_t lane_count = device_lane_count + host_lane_count;
  using Counts = std::array<std::array<std::atomic<std::uint64_t>, lane_count>, 6>;
  return [seed, slow, counts = std::make_shared<Counts>()](DeviceId device, LaneKind lane) {
    auto const kind = static_cast<std::size_t>(lane);
    std::size_t const place = device.valid() ? device.index() : 5;
    RandomKey const key{
        seed, 0, static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(kind), 0};
    auto const words = random_block(key, (*counts)[place][kind]++);
    return std::chrono::nanoseconds(words[0] % 8 == 0 || lane == slow ? words[1] % 300'000 : 0);
  };
}

/// The extents of the micro-batches of call number \p call.
std::vector<BatchShape> extents(Mix const& mix,
                                BatchShape capacity,
                                std::size_t count,
                                std::uint32_t call) {
  std::vector<BatchShape> result(count, capacity);
  for (std::size_t m = 0; mix.varied && m < count; ++m) {
    auto const words = random_block({mix.seed, call, 0, 0, 77}, m);
    result[m] = {1 + words[0] % capacity.rows, 1 + words[1] % capacity.length};
  }
  return result;
}

/// The observable results of a training.
struct Outcome {
  std::vector<double> losses;
  std::vector<std::uint64_t> digests;
  double evaluation_loss = 0;
  std::vector<TensorTable> result_tables;
  std::vector<std::uint64_t> result_digests;
};

template <class Data, class Trainer>
Outcome outcome_of(Mix const& mix, BatchShape capacity, Trainer& trainer) {
  Outcome outcome;
  PostedCalls calls(trainer, mix.ahead);
  std::uint32_t call = 0;
  for (std::size_t step = 0; step < mix.steps; ++step) {
    for (std::size_t c = 0; c < mix.calls; ++c, ++call) {
      auto const count = mix.micro_batches_per_round * mix.rounds;
      Data const data(extents(mix, capacity, count, call), mix.seed + 1000 * call);
      calls.run(data.batch());
    }
    trainer.step();
    if (mix.watched) {
      outcome.digests.push_back(weights_digest(trainer));
    }
    if (step == 0 && mix.evaluated > 0) {
      if (mix.staleness == 1 && mix.master_copies == 1) {  // else it would see the step before
        trainer.synchronize();
      }
      Data const data(extents(mix, capacity, mix.evaluated, 99), mix.seed + 99);
      auto const evaluation = trainer.evaluate(data.batch());
      outcome.evaluation_loss = evaluation.loss;
      outcome.result_tables = evaluation.tables;
      for (std::size_t m = 0; m < mix.evaluated; ++m) {
        Digest digest;  // of the tensor; the bytes between tensors belong to nobody
        digest.add(std::as_bytes(evaluation.template result<float>(m, 0)));
        outcome.result_digests.push_back(digest.value());
      }
    }
  }
  outcome.losses = calls.losses();
  trainer.synchronize();
  outcome.digests.push_back(weights_digest(trainer));
  return outcome;
}

template <class Model>
using TestedPipeline = Pipeline<Model, AnyOptimizer, HostBackend>;

template <class Model>
auto make_pipeline(Mix const& mix,
                   Model const& model,
                   HostBackend& backend,
                   PipelineOptions const& options) {
  return std::make_unique<TestedPipeline<Model>>(
      model,
      AnyOptimizer(mix.adam),
      backend,
      options,
      Policies{.protocol = LayerEventProtocol({.staleness = mix.staleness,
                                               .master_copies = mix.master_copies,
                                               .gradient_buffers = mix.gradient_buffers})});
}

/// The least that holds all layers in one stage.
Bytes one_stage_bytes(ModelDescription const& model) {
  auto const plan = lay_out_stages(model, form_blocks(model), {{}, {{0, model.size()}}}, {1, 1, 1});
  return plan.memory.bytes;
}

/// Whether devices keep parameters of several stages.
bool keeps_some_blocks(StagePlan const& plan) {
  return plan.train.size() > 1 && !plan.memory.resident_parameters.empty();
}

/// A save level for each layer and micro-batch of a round.
std::vector<std::vector<std::size_t>> any_levels(Mix const& mix,
                                                 ModelDescription const& model,
                                                 std::uint32_t round) {
  std::vector<std::vector<std::size_t>> levels;
  for (std::size_t layer = 0; layer + 1 < model.size(); ++layer) {
    auto& of_layer = levels.emplace_back();
    for (std::size_t m = 0; m < mix.micro_batches_per_round; ++m) {
      auto const word = random_word({mix.seed, 0, static_cast<std::uint32_t>(layer), round, 78}, m);
      of_layer.push_back(word % model.layers[layer].save_levels.size());
    }
  }
  return levels;
}

/// The property: the pipeline trains \p model as the oracle does, bit for bit.
template <class Data, class Model>
void check_equal(Mix const& mix, Model const& model, BatchShape capacity) {
  PipelineOptions options;
  options.capacity = capacity;
  options.micro_batches_per_round = mix.micro_batches_per_round;
  options.rounds = mix.rounds;
  options.checkpoints = mix.checkpoints;
  if (mix.levels) {
    options.save_levels = any_levels(mix, describe(model, capacity), 1);
    if (mix.first_differs) {
      options.levels_of_rounds[0] = any_levels(mix, describe(model, capacity), 0);
    }
    if (mix.last_differs) {
      options.levels_of_rounds[mix.rounds - 1] = any_levels(mix, describe(model, capacity), 2);
    }
  }
  options.overlaps_rounds = mix.overlaps;
  options.resident_boundaries = mix.resident;
  options.peer_boundaries = mix.peers;
  options.resident_parameters = mix.keeps_blocks;
  options.clip_norm = mix.clips ? 0.5 : 0;
  options.seed = mix.seed;
  options.optimizer_threads = mix.optimizer_threads;
  options.calls_per_step = mix.calls;
  options.state_type = mix.declared_state ? StateType::declared : StateType::fp32;
  options.step_start = mix.starts_with_all ? StepStart::all_blocks : StepStart::each_block;
  if (mix.scales) {
    options.loss_scale =
        LossScaleOptions{.initial = 0x1p24, .backoff = 1.0 / 64, .growth_interval = 2};
  }

  SerialTrainer serial{model, AnyOptimizer(mix.adam), serial_options(options, mix.staleness)};
  auto const expected = outcome_of<Data>(mix, capacity, serial);

  auto devices = host_devices(mix.devices);
  devices.reaches_peers = mix.peers;
  if (mix.budget == Budget::one_stage) {
    devices.device_memory_bytes = one_stage_bytes(describe(model, capacity));
    options.forecast = forecast_training_seconds;
    options.checkpoints = Checkpoints::stages;
    options.save_levels.reset();
    options.levels_of_rounds.clear();
    options.overlaps_rounds = false;
  } else if (mix.budget != Budget::loose) {
    devices.device_memory_bytes = smallest_budget([&] {
      HostBackend backend(devices);
      auto tiny = options;
      tiny.device_memory = 256;
      make_pipeline(mix, model, backend, tiny);
    });
    if (mix.budget == Budget::between) {
      devices.device_memory_bytes += mix.seed * devices.device_memory_bytes / 1000;
    }
  }
  if (mix.delays || std::getenv("ROUNDPIPE_TEST_DELAYS") != nullptr) {
    devices.delay = random_delays(mix.seed, mix.slow_lane);
  }
  HostBackend backend(devices);
  auto const pipeline = make_pipeline(mix, model, backend, options);
  auto const actual = outcome_of<Data>(mix, capacity, *pipeline);

  if (mix.budget == Budget::one_stage && mix.devices == 1) {  // more may do better with more stages
    RC_ASSERT(pipeline->plan().stages.train.size() == 1U);
    RC_ASSERT(pipeline->plan().stages.memory.buffering == (Buffering{1, 1, 1}));
  }
  RC_ASSERT(actual.losses == expected.losses);
  RC_ASSERT(actual.digests == expected.digests);
  RC_ASSERT(actual.result_tables == expected.result_tables);
  RC_ASSERT(actual.result_digests == expected.result_digests);
  // The pipeline may sum the losses of an evaluation's micro-batches in another order.
  RC_ASSERT(std::abs(actual.evaluation_loss - expected.evaluation_loss) < 1e-9);
  RC_TAG(mix.staleness == 0 ? "sync" : "staleness 1",
         pipeline->plan().stages.train.size() > 2,
         mix.checkpoints == Checkpoints::stages ? "checkpoints of stages"
         : pipeline->plan().host.rings.bytes(BufferKind::offloaded_saves) == 0
             ? "checkpoints of layers"
             : "save levels",
         mix.overlaps ? "rounds overlap" : "rounds one by one",
         pipeline->plan().stages.resident.empty() ? "nothing stays" : "boundaries stay",
         keeps_some_blocks(pipeline->plan().stages) ? "parameters stay" : "parameters leave",
         std::ranges::count(
             pipeline->plan().graph.actions, ActionKind::send_boundary, &Action::kind) == 0
             ? "nothing is sent"
             : "boundaries are sent");
}

/// Tokens and labels, some of them padding.
class Text {
 public:
  static constexpr std::int32_t vocabulary = 11;

  Text(std::vector<BatchShape> shapes, std::uint64_t seed) : shapes_(std::move(shapes)) {
    std::uint64_t position = 0;
    for (auto const shape : shapes_) {
      for (std::int64_t p = 0; p < shape.positions(); ++p, ++position) {
        auto const words = random_block({seed, 0, 0, 0, 0}, position);
        tokens_.push_back(static_cast<std::int32_t>(words[0] % vocabulary));
        labels_.push_back(words[1] % 5 == 0 ? -100
                                            : static_cast<std::int32_t>(words[2] % vocabulary));
      }
    }
  }
  [[nodiscard]] Batch batch() const {
    Batch result(shapes_);
    result.set("tokens", tokens_).set("labels", labels_);
    return result;
  }

 private:
  std::vector<BatchShape> shapes_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> labels_;
};

ToyModelOptions toy_options(Mix const& mix, std::size_t crosses, bool dense_tied) {
  ToyModelOptions model;
  model.types = {5, mix.dtype, mix.dtype};
  model.crosses = crosses;
  model.dense = mix.layers - crosses;
  model.drops = mix.drops;
  model.tied = mix.tied;
  model.dense_tied = dense_tied;
  model.empty_parameters = mix.empty;
  model.frozen_input = mix.frozen && mix.seed % 2 == 0;
  model.frozen_dense = mix.frozen ? model.dense / 2 : 0;
  return model;
}
std::size_t any_crosses(Mix const& mix) {
  return any_number("crosses", 0, std::min<std::size_t>(mix.layers, 4));
}

nn::TransformerConfig transformer_of(Mix const& mix) {
  nn::TransformerConfig config;
  config.vocabulary = Text::vocabulary;
  config.hidden = 8;
  config.layers = static_cast<std::int64_t>(mix.layers);
  config.heads = 2;
  config.kv_heads = 1;
  config.intermediate = 12;
  config.dropout = mix.drops ? 0.2 : 0;
  config.tied = mix.tied;
  config.storage = mix.dtype;
  config.parameter = mix.dtype;
  config.loss_chunk = 4;
  config.initial_deviation = 0.3;
  config.frozen_embedding = mix.frozen && mix.seed % 2 == 0;
  config.frozen_blocks = mix.frozen ? config.layers / 2 : 0;
  return config;
}

nn::TransformerConfig any_transformer(Mix const& mix) {
  auto config = transformer_of(mix);
  config.query_key_norm = any_flag("query key norm");
  config.attention_bias = config.mlp_bias = any_flag("biases");
  config.sliding_window = any_flag("window") ? 2 : 0;
  config.full_attention_blocks = config.layers / 3;
  if (any_flag("adapters")) {
    config.lora = {.rank = 2, .alpha = 8, .dropout = mix.drops ? 0.2 : 0};
    if (any_flag("of some maps")) {
      config.lora.targets = {std::to_string(config.layers) + ".mlp.*", "1.*.[qo]_proj"};
    }
  } else if (any_flag("frozen by name")) {
    config.frozen_parameters = {"1.*.q_proj.*", "mlp.up_proj.weight"};
  }
  return config;
}

/// Plans \p mix of \p model under the smallest budget, and under each of the next \p more steps.
template <class Model>
void check_budgets(Mix const& mix, Model const& model, BatchShape capacity, Bytes more) {
  auto const description = describe(model, capacity);
  auto const blocks = form_blocks(description);
  auto const costs = CostModel::estimate(description, DeviceProperties{});
  Planner const planner(
      RoundRobinSchedule{}, PriorityTransferEngine{}, LayerEventProtocol{}, Partitioner{});
  PlanOptions options{.devices = mix.devices,
                      .micro_batches_per_round = mix.micro_batches_per_round,
                      .rounds = mix.rounds,
                      .device_memory = 256};
  options.checkpoints = mix.checkpoints;
  if (mix.levels) {
    options.save_levels = any_levels(mix, description, 1);
  }
  options.overlaps_rounds = mix.overlaps;
  auto const smallest =
      smallest_budget([&] { return planner.plan_stages(description, blocks, costs, options); });
  for (options.device_memory = smallest; options.device_memory < smallest + more * 256;
       options.device_memory += 256) {
    auto const plan = planner.plan_stages(description, blocks, costs, options);
    RC_ASSERT(plan.memory.bytes <= options.device_memory);
  }
}

}  // namespace

TEST_CASE("a pipeline trains toy models as the serial oracle does, bit for bit") {
  check_cases([] {
    auto const mix = any_mix();
    auto const model = toy_options(mix, any_crosses(mix), any_flag("dense tied"));
    check_equal<ToyData>(mix, toy_model(model), {2, 3});
  });
}

TEST_CASE("a pipeline trains transformers as the serial oracle does, bit for bit") {
  check_cases([] {
    auto const mix = any_mix();
    check_equal<Text>(mix, nn::transformer<nn::HostOps<float>>(any_transformer(mix)), {2, 5});
  });
}

TEST_CASE("a base with adapters is on the host once, in its own type") {
  nn::TransformerConfig config;
  config.vocabulary = Text::vocabulary;
  config.hidden = 8;
  config.layers = 2;
  config.heads = 2;
  config.parameter = DType::bf16;
  config.lora = {.rank = 2};
  auto const model = nn::transformer<nn::HostOps<float>>(config);
  Bytes base = 0;
  Bytes adapters = 0;
  Bytes adapters_in_fp32 = 0;
  for (auto const& block : form_blocks(describe(model, {2, 5})).blocks) {
    (block.frozen ? base : adapters) += block.master.bytes();
    adapters_in_fp32 += block.frozen ? 0 : block.gradient.bytes();
  }
  REQUIRE(base > adapters);
  HostBackend backend(host_devices(1));
  Mix const mix{.staleness = 1, .master_copies = 2, .adam = true};
  auto const pipeline = make_pipeline(mix, model, backend, {.capacity = {2, 5}});
  auto const line = [&](std::string const& name) {
    for (auto const& entry : pipeline->plan().host.ledger) {
      if (entry.name == name) {
        return entry.bytes;
      }
    }
    return Bytes{0};
  };
  CHECK(line("master copies") == base + 2 * adapters);
  CHECK(line("optimizer copies and states") == 3 * adapters_in_fp32);
  CHECK(line("gradients") == adapters);
}

TEST_CASE("a pipeline carries tensors past layers as the serial oracle does, bit for bit") {
  check_cases([] {
    auto const mix = any_mix();
    ToyTypes const types{3, mix.dtype, mix.dtype, mix.frozen ? 1U : 0U};
    auto const model = toy_skips(types, any_number("before", 0, 3), any_number("readers", 0, 3));
    check_equal<ToyData>(mix, model, {2, 3});
  });
}

TEST_CASE("a device with room for one copy of everything trains as the serial oracle does") {
  check_times(20, [] {
    auto mix = any_mix();
    mix.budget = Budget::one_stage;
    mix.devices = any_number("of the devices", 1, 3);
    mix.rounds = mix.devices * any_number("rounds a device", 1, 2);
    mix.delays = any_flag("delays");
    check_equal<ToyData>(mix, toy_model(toy_options(mix, any_crosses(mix), false)), {2, 3});
  });
}

TEST_CASE("delays on any lane never change the weights of staleness 1") {
  auto const* const cases = std::getenv("ROUNDPIPE_TEST_CASES");
  check_times(cases == nullptr ? 200 : std::atoi(cases), [] {
    auto mix = any_mix();
    mix.staleness = 1;
    mix.declared_state = mix.declared_state && mix.master_copies == 2;
    mix.devices = any_number("few devices", 1, 3);
    mix.layers = any_number("few layers", 1, 4);
    mix.delays = true;
    mix.slow_lane =
        static_cast<LaneKind>(any_number("slow lane", 0, device_lane_count + host_lane_count - 1));
    check_equal<ToyData>(mix, toy_model(toy_options(mix, 0, false)), {2, 3});
  });
}

TEST_CASE("what goes to the next stage's device and to the host trains as the serial oracle does") {
  for (std::size_t const devices : {2U, 3U}) {
    PipelineOptions options{.capacity = {2, 3}, .micro_batches_per_round = 3, .rounds = 2};
    options.seed = devices;
    options.checkpoints = Checkpoints::layers;
    options.resident_boundaries = false;
    Mix const mix{.micro_batches_per_round = 3, .rounds = 2, .evaluated = 2, .seed = devices};
    auto const model = toy_model({.dense = 4});
    SerialTrainer serial{model, AnyOptimizer(false), serial_options(options, 0)};
    auto const expected = outcome_of<ToyData>(mix, options.capacity, serial);
    auto const train = [&](bool peers, Bytes device_memory) {
      auto machine = host_devices(devices);
      machine.device_memory_bytes = device_memory;
      machine.reaches_peers = peers;
      HostBackend backend(machine);
      options.peer_boundaries = peers;
      Pipeline pipeline{
          model,
          AnyOptimizer(false),
          backend,
          options,
          Policies{.protocol = LayerEventProtocol(0), .partitioner = OneLayerStages{}}};
      auto const actual = outcome_of<ToyData>(mix, options.capacity, pipeline);
      CHECK(actual.losses == expected.losses);
      CHECK(actual.digests == expected.digests);
      CHECK(actual.result_digests == expected.result_digests);
      return pipeline.plan().stages;
    };
    auto const least = train(false, 1_MiB).memory.bytes;
    std::size_t both = 0;
    for (Bytes extra = 512; extra <= 4096; extra += 512) {
      both += train(true, least + extra).sent.empty() ? 0 : 1;
    }
    CHECK(both > 0);
  }
}

TEST_CASE("rounds are summed in order, also where the last of them have no later slot") {
  check_times(1, [] {
    Mix mix;
    for (mix.devices = 1; mix.devices <= 5; ++mix.devices) {
      for (mix.rounds = 2; mix.rounds <= 4; ++mix.rounds) {
        RC_LOG() << mix.devices << " devices, " << mix.rounds << " rounds\n";
        check_equal<ToyData>(mix, toy_model(toy_options(mix, 0, false)), {2, 3});
      }
    }
  });
}

TEST_CASE("every budget above the smallest works") {
  check_cases([] {
    auto const mix = any_mix();
    check_budgets(mix, toy_model(toy_options(mix, any_crosses(mix), false)), {2, 3}, 40);
  });
  check_cases([] {
    auto const mix = any_mix();
    check_budgets(mix, nn::transformer<nn::HostOps<float>>(any_transformer(mix)), {2, 5}, 80);
  });
  check_times(1, [] {  // stages of one layer that fit one by one, and not together
    Mix mix;
    mix.devices = 4;
    mix.layers = 1;
    mix.rounds = 2;
    mix.checkpoints = Checkpoints::layers;
    mix.levels = mix.overlaps = mix.frozen = mix.tied = true;
    check_budgets(mix, nn::transformer<nn::HostOps<float>>(transformer_of(mix)), {2, 5}, 80);
  });
}
