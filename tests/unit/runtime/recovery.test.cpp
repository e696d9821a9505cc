// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Injects an exception at every kind of action, in every mode, and goes on. From then on weights
// and losses must be, bit for bit, those of a training that never saw the exception.

#include <roundpipe/runtime/recovery.hpp>

#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <support/error_of.hpp>
#include <support/held_blocks.hpp>
#include <support/own_policies.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace recovery_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// Where a trap is: the lanes of devices, then those of the host, then layers; last the optimizer.
using Place = std::size_t;
constexpr Place forward_place = device_lane_count + host_lane_count;
constexpr Place backward_place = forward_place + 1;
constexpr Place places = backward_place + 1;
constexpr Place update_place = places;
constexpr Place nowhere = update_place + 1;

/// Throws once: when somebody comes to \c place for the \c number th time, from 0; layers, in the
/// call \c call or later.
class Trap {
 public:
  Trap(Place place, int number) : place_(place), left_(number) {}
  void move_to(Place place, std::size_t call) {
    call_ = call;
    place_ = place;
  }
  void spring(Place place, std::size_t call = std::numeric_limits<std::size_t>::max()) {
    if (place == place_ && call >= call_ && left_.fetch_sub(1) == 0) {
      throw std::runtime_error("injected");
    }
  }

 private:
  std::atomic<Place> place_;
  std::atomic<std::size_t> call_{0};
  std::atomic<int> left_;
};

/// A dense layer that throws when it is called, before it enqueues anything.
struct TrappedDense : ToyDense {
  std::shared_ptr<Trap> trap;

  void forward(ForwardContext<HostStream>& ctx) const {
    trap->spring(forward_place, ctx.random().step);
    ToyDense::forward(ctx);
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    trap->spring(backward_place, ctx.random().step);
    ToyDense::backward(ctx);
  }
};

struct Mode {
  std::string name;
  EventProtocolOptions protocol{};
  std::function<void(PipelineOptions&)> set = [](PipelineOptions&) {};
  DType type = DType::f32;
};

LossScaleOptions scale() {  // the first steps overflow
  return {.initial = 0x1p24, .backoff = 1.0 / 64, .growth_interval = 2};
}

constexpr EventProtocolOptions two_masters{.master_copies = 2};
constexpr EventProtocolOptions p_copies{.master_copies = 1};
constexpr EventProtocolOptions synchronous{.staleness = 0};

std::vector<Mode> modes() {
  auto const clips = [](PipelineOptions& o) { o.clip_norm = 0.5; };
  auto const scales = [](PipelineOptions& o) {
    o.loss_scale = scale();
    o.clip_norm = 0.5;
  };
  auto const rounds = [](PipelineOptions& o) {
    o.rounds = 2;
    o.overlaps_rounds = true;
    o.save_levels = {{}, {1, 2}, {2, 0}, {0, 1}};
  };
  auto const calls = [](PipelineOptions& o) { o.calls_per_step = 2; };
  return {{"two masters", two_masters},
          {"P copies", p_copies},
          {"synchronous", synchronous},
          {"two masters, two gradients", {.master_copies = 2, .gradient_buffers = 2}},
          {"P copies, two gradients", {.master_copies = 1, .gradient_buffers = 2}},
          {"two masters, declared state",
           two_masters,
           [](PipelineOptions& o) { o.state_type = StateType::declared; },
           DType::bf16},
          {"two masters, clips", two_masters, clips},
          {"P copies, clips", p_copies, clips},
          {"synchronous, clips", synchronous, clips},
          {"two masters, loss scale", two_masters, scales, DType::f16},
          {"P copies, loss scale", p_copies, scales, DType::f16},
          {"synchronous, loss scale", synchronous, scales, DType::f16},
          {"two masters, rounds that overlap", two_masters, rounds},
          {"P copies, rounds that overlap", p_copies, rounds},
          {"synchronous, rounds that overlap", synchronous, rounds},
          {"two masters, several calls", two_masters, calls},
          {"P copies, several calls", p_copies, calls}};
}

PipelineOptions options_of(Mode const& mode) {
  PipelineOptions options;
  options.capacity = {2, 3};
  options.micro_batches_per_round = 2;
  options.seed = 5;
  options.verify = false;  // repeats the same plan
  options.optimizer_threads = 1;
  mode.set(options);
  return options;
}

auto model_of(Mode const& mode, std::shared_ptr<Trap> const& trap) {
  ToyTypes const types{.width = 5, .parameter = mode.type, .boundary = mode.type};
  return Sequential{ToyInput{types, 3, ""},
                    repeat(2, ToyDense{types, ""}),
                    TrappedDense{{types, ""}, trap},
                    ToyLoss{types, 3, ""}};
}

/// AdamW that throws when it is asked for its rule, or with a rate that makes no sense.
struct TrappedAdamW {
  AdamW rule;
  std::shared_ptr<Trap> trap;

  explicit TrappedAdamW(std::shared_ptr<Trap> given,
                        LearningRate rate = LearningRate::constant(0.01))
      : rule({.rate = std::move(rate)}), trap(std::move(given)) {}
  [[nodiscard]] std::size_t state_arrays() const { return rule.state_arrays(); }
  template <class F>
  void with_rule(UpdateContext const& context, F const& f) const {
    trap->spring(update_place);
    rule.with_rule(context, f);
  }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    rule.update(context, weights, gradients, states);
  }
};

constexpr std::size_t most_steps = 16;

/// The batches of a training, by call.
class Batches {
 public:
  explicit Batches(PipelineOptions const& options) : calls_(options.calls_per_step) {
    for (std::size_t i = 0; i < most_steps * calls_; ++i) {
      data_.emplace_back(
          options.micro_batches_per_round * options.rounds, options.capacity, 100 + i);
    }
  }
  [[nodiscard]] std::size_t calls() const noexcept { return calls_; }
  [[nodiscard]] Batch of(std::size_t step, std::size_t call) const {
    return data_[step * calls_ + call].batch();
  }

 private:
  std::size_t calls_;
  std::vector<ToyData> data_;
};

/// By step: the losses of its calls, and (from 0) the weights that it left.
struct Outcome {
  std::vector<std::vector<double>> losses = std::vector<std::vector<double>>(most_steps);
  std::vector<std::uint64_t> digests = std::vector<std::uint64_t>(most_steps + 1);
};

template <class Trainer>
void train_step(Trainer& trainer, Batches const& batches, std::size_t step, Outcome& outcome) {
  outcome.losses[step].clear();
  for (std::size_t c = 0; c < batches.calls(); ++c) {
    outcome.losses[step].push_back(trainer.forward_backward(batches.of(step, c)));
  }
  trainer.step();
}

Outcome oracle_of(Mode const& mode) {
  auto const options = options_of(mode);
  auto const trap = std::make_shared<Trap>(nowhere, 0);
  SerialTrainer trainer{
      model_of(mode, trap), TrappedAdamW(trap), serial_options(options, mode.protocol.staleness)};
  Batches const batches(options);
  Outcome outcome;
  outcome.digests[0] = weights_digest(trainer);
  for (std::size_t step = 0; step < most_steps; ++step) {
    train_step(trainer, batches, step, outcome);
    outcome.digests[step + 1] = weights_digest(trainer);
  }
  return outcome;
}

/// Devices whose work springs \p trap, and whose host lanes are slow.
HostBackendOptions trapped_devices(std::shared_ptr<Trap> const& trap) {
  auto devices = host_devices(2);
  devices.delay = [trap](DeviceId device, LaneKind lane) {
    if (!device.valid()) {
      trap->spring(static_cast<Place>(lane));
    }
    return std::chrono::microseconds(device.valid() ? 0 : 200);
  };
  devices.fault = [trap](DeviceId, LaneKind lane, std::uint64_t) {
    trap->spring(static_cast<Place>(lane));
  };
  return devices;
}

auto make_pipeline(Mode const& mode,
                   HostBackend& backend,
                   std::shared_ptr<Trap> const& trap,
                   PipelineOptions const& options,
                   LearningRate const& rate = LearningRate::constant(0.01)) {
  using Model = decltype(model_of(mode, trap));
  return std::make_unique<Pipeline<Model, TrappedAdamW, HostBackend>>(
      model_of(mode, trap),
      TrappedAdamW(trap, rate),
      backend,
      options,
      Policies{.protocol = LayerEventProtocol(mode.protocol), .partitioner = OneLayerStages{}});
}

enum class End { never_thrown, recovered, lost };

/// What a training has met.
struct Met {
  End end = End::never_thrown;
  std::optional<ActionKind> kind = std::nullopt;  ///< Of the action that threw.
};

/// The kind of the action that \p message begins with.
std::optional<ActionKind> kind_in(std::string const& message) {
  for (std::size_t k = 0; k < static_cast<std::size_t>(ActionKind::copy_parameters) + 1; ++k) {
    auto const kind = static_cast<ActionKind>(k);
    if (message.starts_with(name_of(kind))) {
      return kind;
    }
  }
  return std::nullopt;
}

/// The kinds of actions of a call and a step, by lane.
std::vector<std::set<ActionKind>> kinds_of(Mode const& mode) {
  auto const trap = std::make_shared<Trap>(nowhere, 0);
  HostBackend backend{trapped_devices(trap)};
  auto const pipeline = make_pipeline(mode, backend, trap, options_of(mode));
  std::vector<std::set<ActionKind>> kinds(forward_place);
  for (auto const* graph : {&pipeline->plan().graph, &pipeline->plan().step}) {
    for (auto const& action : graph->actions) {
      kinds[static_cast<Place>(action.lane.kind)].insert(action.kind);
    }
  }
  return kinds;
}

/// Owns what a \ref TrainingState views.
class KeptState {
 public:
  explicit KeptState(TrainingState state) : state_(std::move(state)) {
    for_each_tensor(state_, [&](std::string const&, HostTensor& tensor) {
      auto const& copy = bytes_.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
      tensor.bytes = copy;
    });
  }
  [[nodiscard]] TrainingState const& state() const noexcept { return state_; }

 private:
  TrainingState state_;
  std::deque<std::vector<std::byte>> bytes_;
};

/// Trains until an error occurs, recovers, and trains five steps more; with \p evaluates, there is
/// an evaluation in every other iteration, and somebody reads the state of step 1 slowly. Compares
/// all with \p oracle. Where the pipeline cannot recover, it goes on from the state of step 0 or 1.
Met train_through(Mode const& mode,
                  Place place,
                  int number,
                  Outcome const& oracle,
                  bool evaluates,
                  StepStart start = StepStart::all_blocks) {
  auto const trap = std::make_shared<Trap>(place, number);
  HostBackend backend{trapped_devices(trap)};
  auto options = options_of(mode);
  options.step_start = start;
  auto const pipeline = make_pipeline(mode, backend, trap, options);
  Batches const batches(options);
  Outcome outcome;
  Met met;
  std::optional<KeptState> kept;
  Tensors first;
  std::optional<SlowReader> reader;
  std::size_t last = 8;
  for (std::uint64_t step = 0; step < last;) {
    auto const error = error_of([&] {
      if (evaluates && step % 2 == 1) {
        (void)pipeline->evaluate(batches.of(0, 0));
      }
      if (step == 0 || (step == 1 && start == StepStart::each_block)) {
        kept.emplace(pipeline->state());
      }
      if (evaluates && step == 1 && !reader) {
        auto const state = pipeline->state();
        first = read_tensors(state);
        reader.emplace(state, static_cast<std::uint32_t>(number));
      }
      train_step(*pipeline, batches, step, outcome);
      ++step;
      if (step == last) {
        pipeline->synchronize();
      }
    });
    if (error.code() == std::error_code{}) {
      continue;
    }
    CHECK(met.end == End::never_thrown);
    CHECK(error.message().find("injected") != std::string::npos);
    met.kind = kind_in(error.message());
    auto const refusal = error_of([&] { step = pipeline->recover(); });
    if (refusal.code() != std::error_code{}) {
      CHECK(refusal.code() == Errc::aborted);
      pipeline->restore(kept->state());
      step = kept->state().position.step;
    }
    met.end = refusal.code() == std::error_code{} ? End::recovered : End::lost;
    CHECK(pipeline->report().steps == step);
    CHECK(weights_digest(*pipeline) == oracle.digests[step]);
    last = step + 5;
    REQUIRE(last <= most_steps);
  }
  CHECK(weights_digest(*pipeline) == oracle.digests[last]);
  CHECK(pipeline->report().steps == last);
  if (reader) {
    reader->join();
    CHECK(reader->tensors == first);
  }
  for (std::size_t step = 0; step < last; ++step) {
    CHECK(outcome.losses[step] == oracle.losses[step]);
  }
  return met;
}

}  // namespace

TEST_CASE(
    "after an exception at any kind of action in any mode, the training goes on bit for bit") {
  for (auto const& mode : modes()) {
    CAPTURE(mode.name);
    auto const oracle = oracle_of(mode);
    auto const met_at = [&](Place place, int number) {
      CAPTURE(place);
      CAPTURE(number);
      auto const met = train_through(mode, place, number, oracle, number % 2 == 1);
      CHECK(met.end != End::lost);
      CHECK(met.kind.has_value() == (met.end == End::recovered));
      return met;
    };
    auto const kinds = kinds_of(mode);
    for (Place lane = 0; lane < kinds.size(); ++lane) {
      auto left = kinds[lane];
      if (left.empty()) {
        continue;  // nobody comes there
      }
      for (int const number : {0, 1, 3, 8, 20}) {
        if (auto const met = met_at(lane, number); met.kind) {
          left.erase(*met.kind);
        }
      }
      auto met = Met{End::recovered};
      for (int number = 2; !left.empty() && met.end == End::recovered; ++number) {
        met = met_at(lane, number);
        left.erase(met.kind.value_or(*left.begin()));
      }
      CAPTURE(lane);
      CHECK(met.end == End::recovered);  // so no kind is left out
    }
    for (int const number : {0, 3, 8}) {
      auto const forward = met_at(forward_place, number).kind;
      CHECK((forward == ActionKind::forward || forward == ActionKind::recompute));
      CHECK(met_at(backward_place, number).kind == ActionKind::backward);
    }
  }
}

TEST_CASE("an optimizer that throws before a step keeps the weights, and later the state helps") {
  for (auto const& mode : modes()) {
    auto const oracle = oracle_of(mode);
    int parameters = 0;  // step() asks for each once, then each is updated
    for (auto const& layer : describe(model_of(mode, nullptr), {2, 3}).layers) {
      parameters += static_cast<int>(layer.parameters.size());
    }
    for (int const number : {0, parameters - 1, parameters, 2 * parameters - 1, 5 * parameters}) {
      CAPTURE(mode.name);
      CAPTURE(number);
      auto const met = train_through(mode, update_place, number, oracle, number % 2 == 1);
      CHECK(met.end != End::never_thrown);
      if (number < parameters) {  // on the thread that calls step()
        CHECK(met.end == End::recovered);
        CHECK(met.kind == std::nullopt);
      } else if (!options_of(mode).loss_scale) {  // no step is skipped
        CHECK(met.end == (met.kind ? End::lost : End::recovered));
        CHECK((met.kind == ActionKind::optimizer_step || number == 5 * parameters));
      }
    }
  }
}

TEST_CASE("a bad batch costs itself alone: the steps that were posted before it are finished") {
  enum class Bad { loss, forward, backward, caller };
  for (auto const& mode : modes()) {
    auto const oracle = oracle_of(mode);
    for (auto const bad : {Bad::loss, Bad::forward, Bad::backward, Bad::caller}) {
      CAPTURE(mode.name);
      CAPTURE(static_cast<int>(bad));
      auto const trap = std::make_shared<Trap>(nowhere, 0);
      HostBackend backend{trapped_devices(trap)};
      auto const options = options_of(mode);
      auto const pipeline = make_pipeline(mode, backend, trap, options);
      Batches const batches(options);
      Outcome outcome;
      for (std::size_t step = 0; step < 9; ++step) {
        if (step == 2 || step == 4) {
          auto const error = error_of([&] {
            ToyData data(
                options.micro_batches_per_round * options.rounds, options.capacity, 1000 + step);
            if (bad == Bad::loss) {
              std::fill(data.targets().begin(),
                        data.targets().end(),
                        std::numeric_limits<float>::quiet_NaN());
            } else if (bad != Bad::caller && step == 2) {
              trap->move_to(bad == Bad::forward ? forward_place : backward_place,
                            step * batches.calls());
            }
            pipeline->forward_backward(data.batch());
            (void)pipeline->timeline();  // waits for the backward
            throw Error(Errc::unsupported, "of the caller's own");
          });
          CHECK(error.code() != std::error_code{});
          REQUIRE(pipeline->recover() == step);
          trap->move_to(nowhere, 0);
        }
        train_step(*pipeline, batches, step, outcome);
      }
      CHECK(weights_digest(*pipeline) == oracle.digests[9]);
    }
  }
}

TEST_CASE("a rate that makes no sense keeps the weights of the step before, in every mode") {
  for (auto mode : modes()) {
    for (auto const start : {StepStart::all_blocks, StepStart::each_block}) {
      CAPTURE(mode.name);
      auto const oracle = oracle_of(mode);
      auto const trap = std::make_shared<Trap>(nowhere, 0);
      HostBackend backend{trapped_devices(trap)};
      auto options = options_of(mode);
      options.step_start = start;
      std::atomic<bool> is_bad = true;
      auto const rate = [&](std::uint64_t step) {
        return step == 3 && is_bad ? std::numeric_limits<double>::quiet_NaN() : 0.01;
      };
      auto const pipeline = make_pipeline(mode, backend, trap, options, rate);
      Batches const batches(options);
      Outcome outcome;
      train_step(*pipeline, batches, 0, outcome);
      train_step(*pipeline, batches, 1, outcome);
      auto const error = error_of([&] {
        train_step(*pipeline, batches, 2, outcome);
        pipeline->synchronize();
      });
      CHECK(error.code() == Errc::invalid_argument);
      CHECK(error.message().find("the learning rate of step 3 is") != std::string::npos);
      CHECK(weights_digest(*pipeline) == oracle.digests[2]);
      REQUIRE(pipeline->recover() == 2);
      CHECK(weights_digest(*pipeline) == oracle.digests[2]);
      is_bad = false;
      for (std::size_t step = 2; step < 7; ++step) {
        train_step(*pipeline, batches, step, outcome);
        CHECK(outcome.losses[step] == oracle.losses[step]);
      }
      CHECK(weights_digest(*pipeline) == oracle.digests[7]);
    }
  }
}

TEST_CASE(
    "where each block is updated as soon as it can, a training goes on bit for bit or not at "
    "all") {
  std::size_t recovered = 0;
  std::size_t lost = 0;
  for (auto const& mode : {Mode{"two masters", two_masters},
                           Mode{"P copies", p_copies},
                           Mode{"synchronous", synchronous}}) {
    auto const oracle = oracle_of(mode);
    for (Place place = 0; place < places; ++place) {
      for (int const number : {0, 2, 3, 7, 20}) {
        CAPTURE(mode.name);
        CAPTURE(place);
        CAPTURE(number);
        auto const end =
            train_through(mode, place, number, oracle, false, StepStart::each_block).end;
        recovered += end == End::recovered ? 1 : 0;
        lost += end == End::lost ? 1 : 0;
      }
    }
  }
  CHECK(recovered > 10);
  CHECK(lost > 0);
}

}  // namespace recovery_test
