// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/snapshot.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>
#include <roundpipe/snapshots/snapshot_writer.hpp>
#include <support/any_optimizer.hpp>
#include <support/held_blocks.hpp>
#include <support/own_policies.hpp>
#include <support/pipeline_runs.hpp>
#include <support/property.hpp>
#include <support/smallest_budget.hpp>
#include <support/temporary_folder.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace resumed_training_test {

using namespace roundpipe;
using namespace roundpipe::test;

constexpr BatchShape capacity{2, 3};
using Model = decltype(toy_model({}));
using TestedPipeline = Pipeline<Model, AnyOptimizer, HostBackend>;

/// What a training is; whoever goes on with it has the same.
struct Mix {
  ToyModelOptions model{};
  PipelineOptions options{};
  int staleness = 0;
  bool adam = false;
  std::size_t steps = 1;
  std::size_t stop = 0;      ///< The step after which another trainer goes on.
  bool drains = false;       ///< All trainings synchronize there.
  bool was_used = false;     ///< The other trainer has trained before.
  bool stops_twice = false;  ///< A third trainer goes on from the other one, a step later.
};

Mix any_mix() {
  Mix mix;
  auto const dtype = std::array{DType::f32, DType::bf16, DType::f16}[any_number("type", 0, 2)];
  mix.model.types = {5, dtype, dtype};
  mix.model.dense = any_number("dense layers", 0, 4);
  mix.model.drops = any_flag("drops");
  mix.model.tied = any_flag("tied");
  mix.model.dense_tied = any_flag("dense tied");
  mix.model.empty_parameters = any_flag("empty");
  mix.model.frozen_input = any_flag("frozen input");
  mix.model.frozen_dense = any_flag("frozen dense") ? mix.model.dense / 2 : 0;
  auto& options = mix.options;
  options.capacity = capacity;
  options.micro_batches_per_round = any_number("micro-batches", 1, 4);
  options.rounds = any_number("rounds", 1, 3);
  options.calls_per_step = any_number("calls", 1, 3);
  options.clip_norm = any_flag("clips") ? 0.5 : 0;
  options.seed = any_number("seed", 0, 999);
  options.state_type =
      dtype != DType::f16 && any_flag("declared state") ? StateType::declared : StateType::fp32;
  if (dtype == DType::f16 || any_flag("scales")) {  // overflows f16 at first
    options.loss_scale =
        LossScaleOptions{.initial = 0x1p24, .backoff = 1.0 / 64, .growth_interval = 2};
  }
  mix.staleness = static_cast<int>(any_number("staleness", 0, 1));
  mix.adam = any_flag("adam");
  mix.steps = any_number("steps", 1, 6);
  mix.stop = any_number("stop", 0, mix.steps);
  mix.drains = any_flag("drains");
  mix.was_used = any_flag("was used");
  mix.stops_twice = any_flag("stops twice");
  return mix;
}

using Delays = decltype(HostBackendOptions::delay);

/// A pipeline, and what it has besides the \ref Mix: nothing of this may change a bit.
class Trainer {
 public:
  explicit Trainer(Mix const& mix, Delays delays = {}) {
    auto options = mix.options;
    options.checkpoints = any_flag("keeps all") ? Checkpoints::layers : Checkpoints::stages;
    options.overlaps_rounds = options.rounds > 1 && any_flag("overlaps");
    options.optimizer_threads = any_number("optimizer threads", 1, 3);
    options.step_start =
        any_flag("starts with all") ? StepStart::all_blocks : StepStart::each_block;
    auto const needs_two = options.state_type == StateType::declared && mix.staleness == 1;
    LayerEventProtocol const protocol({.staleness = mix.staleness,
                                       .master_copies = any_number("masters", needs_two ? 2 : 1, 2),
                                       .gradient_buffers = any_number("gradient buffers", 1, 2)});
    Policies policies{.protocol = protocol};
    if (any_flag("one-layer stages")) {
      policies.partitioner = OneLayerStages{};
    }
    auto machine = host_devices(any_number("devices", 1, 4));
    machine.delay = std::move(delays);
    auto const plan = [&] {
      backend_ = std::make_unique<HostBackend>(machine);
      pipeline_ = std::make_unique<TestedPipeline>(
          toy_model(mix.model), AnyOptimizer(mix.adam), *backend_, options, policies);
    };
    if (any_flag("small budget")) {
      options.device_memory = 256;
      options.device_memory = smallest_budget(plan);
    }
    plan();
  }

  [[nodiscard]] TestedPipeline& operator*() const { return *pipeline_; }

 private:
  std::unique_ptr<HostBackend> backend_;
  std::unique_ptr<TestedPipeline> pipeline_;
};

/// Pauses before most pieces of work, now and then longer ones.
Delays any_delays() {
  return [next = std::make_shared<std::atomic<std::uint32_t>>(any_number("delays", 0, 9999))](
             DeviceId, LaneKind) {
    auto const number = (*next)++ * 2654435761U >> 16U;
    return std::chrono::microseconds(number % 16 == 0 ? number % 400 : number % 8);
  };
}

/// Trains steps [\p from, \p to); returns their losses.
template <class T>
std::vector<double> train(Mix const& mix, T& trainer, std::size_t from, std::size_t to) {
  std::vector<double> losses;
  auto const calls = mix.options.calls_per_step;
  for (auto step = from; step < to; ++step) {
    // A step may have fewer calls than the options allow.
    for (std::size_t c = 0; c < 1 + (mix.options.seed + step) % calls; ++c) {
      auto const count = mix.options.micro_batches_per_round * mix.options.rounds;
      ToyData const data(count, capacity, mix.options.seed + 10 * step + c);
      losses.push_back(trainer.forward_backward(data.batch()));
    }
    trainer.step();
    if (mix.drains && step + 1 == mix.stop) {
      trainer.synchronize();
    }
  }
  return losses;
}

std::vector<double> joined(std::vector<double> first, std::vector<double> const& then) {
  first.insert(first.end(), then.begin(), then.end());
  return first;
}

/// A copy of all tensors, also of those that nobody would read.
Tensors tensors_of(TrainingState const& state) {
  auto copies = read_tensors(state);
  auto const copy = [&](std::string const& name, HostTensor const& tensor) {
    copies[name].assign(tensor.bytes.begin(), tensor.bytes.end());
  };
  for (auto const& parameter : state.parameters) {
    copy(parameter.name + "@visible", parameter.visible);
  }
  return copies;
}

void require_equal(TrainingPosition const& a, TrainingPosition const& e) {
  RC_ASSERT(a.step == e.step);
  RC_ASSERT(a.skipped_steps == e.skipped_steps);
  RC_ASSERT(a.visible_step == e.visible_step);
  RC_ASSERT(a.calls == e.calls);
  RC_ASSERT(a.loss_scale.has_value() == e.loss_scale.has_value());
  if (a.loss_scale) {
    RC_ASSERT(a.loss_scale->value == e.loss_scale->value);
    RC_ASSERT(a.loss_scale->clean_steps == e.loss_scale->clean_steps);
    RC_ASSERT(a.loss_scale->recorded_steps == e.loss_scale->recorded_steps);
    RC_ASSERT(a.overflowed == e.overflowed);
  }
}

void require_equal(TrainingState const& actual, TrainingState const& expected) {
  require_equal(actual.position, expected.position);
  RC_ASSERT(tensors_of(actual) == tensors_of(expected));
}

/// Another pipeline, which may have trained something else.
Trainer other_trainer(Mix const& mix) {
  Trainer other(mix);
  if (mix.was_used) {
    train(mix, *other, mix.steps, mix.steps + 2);
    ToyData const data(
        mix.options.micro_batches_per_round * mix.options.rounds, capacity, mix.options.seed);
    (*other).forward_backward(data.batch());  // whose gradients are dropped
  }
  return other;
}

enum class Way { files, any };

/// Lets \p to go on where \p from has stopped, perhaps through files.
template <class To, class From>
void hand_over(Mix const& mix, From& from, To& to, Way way = Way::any) {
  if (way == Way::any && !any_flag("through files")) {
    to.restore(from.state());
    return;
  }
  TemporaryFolder const folder;
  SnapshotWriterOptions options;
  options.copy_memory = any_flag("copies") ? 1_MiB : 0;
  // Without them they come from a trainer that was made alike, and has made no calls of a step.
  options.format.stores_frozen = mix.was_used || any_flag("stores frozen");
  SnapshotWriter writer(folder.path, options);
  RC_ASSERT((writer.save(from.state()).mode == SnapshotMode::copied) == (options.copy_memory > 0));
  writer.wait();
  Snapshot const snapshot(*newest_snapshot(folder.path));
  to.restore(options.format.stores_frozen ? snapshot.state() : snapshot.state(to.state()));
}

/// Fails the test case unless \p testable holds in \p number cases, or as ROUNDPIPE_TEST_CASES
/// says.
template <class Testable>
void check_cases(Testable&& testable, int number = 200) {
  auto const* const cases = std::getenv("ROUNDPIPE_TEST_CASES");
  auto params = rc::detail::configuration().testParams;
  params.maxSuccess = cases == nullptr ? number : std::atoi(cases);
  check_property(std::forward<Testable>(testable), params);
}

TEST_CASE(
    "another pipeline goes on where one has stopped, as if nothing had happened, bit for bit") {
  check_cases([] {
    auto const mix = any_mix();
    Trainer const whole(mix);
    auto const losses = train(mix, *whole, 0, mix.steps);

    Trainer const first(mix);
    auto const begun = train(mix, *first, 0, mix.stop);
    auto const other = other_trainer(mix);
    hand_over(mix, *first, *other);
    auto resumed = begun;
    if (mix.stops_twice && mix.stop < mix.steps) {
      auto const third = other_trainer(mix);
      resumed = joined(resumed, train(mix, *other, mix.stop, mix.stop + 1));
      hand_over(mix, *other, *third);
      resumed = joined(resumed, train(mix, *third, mix.stop + 1, mix.steps));
      require_equal((*third).state(), (*whole).state());
    } else {
      resumed = joined(resumed, train(mix, *other, mix.stop, mix.steps));
      require_equal((*other).state(), (*whole).state());
    }
    RC_ASSERT(resumed == losses);

    // To be asked for its state has changed nothing.
    RC_ASSERT(joined(begun, train(mix, *first, mix.stop, mix.steps)) == losses);
    require_equal((*first).state(), (*whole).state());
    auto const& state = (*whole).state().position;
    RC_TAG(mix.staleness == 0 ? "sync" : "staleness 1",
           state.skipped_steps > 0 ? "skipped steps" : "no skipped steps",
           mix.options.state_type == StateType::declared ? "declared state" : "fp32 state");
  });
}

TEST_CASE("the serial trainer goes on likewise, and a pipeline where it has stopped") {
  check_cases([] {
    auto const mix = any_mix();
    auto const fresh = [&] {
      return SerialTrainer<Model, AnyOptimizer>{
          toy_model(mix.model), AnyOptimizer(mix.adam), serial_options(mix.options, mix.staleness)};
    };
    auto whole = fresh();
    auto const losses = train(mix, whole, 0, mix.steps);
    auto first = fresh();
    auto const begun = train(mix, first, 0, mix.stop);
    auto other = fresh();
    hand_over(mix, first, other);
    RC_ASSERT(joined(begun, train(mix, other, mix.stop, mix.steps)) == losses);
    require_equal(other.state(), whole.state());
    // The serial trainer keeps everything in fp32.
    if (mix.options.state_type == StateType::fp32 && !mix.model.frozen_input &&
        mix.model.frozen_dense == 0) {
      auto const pipeline = other_trainer(mix);
      hand_over(mix, first, *pipeline);
      RC_ASSERT(joined(begun, train(mix, *pipeline, mix.stop, mix.steps)) == losses);
      require_equal((*pipeline).state(), whole.state());
    }
  });
}

TEST_CASE("a live state is read while the training goes on, and is that of its step, bit for bit") {
  check_cases(
      [] {
        auto const mix = any_mix();
        Trainer const whole(mix);
        TemporaryFolder const folder;
        SnapshotWriterOptions writing;
        writing.keep = mix.steps;
        writing.copy_memory = 0;
        std::minstd_rand random(static_cast<std::uint32_t>(any_number("reading", 1, 9999)));
        writing.format.tensor_name = [&](std::string const& name) {
          pause(random() % 100);  // on the thread that writes
          return name;
        };
        std::optional<SnapshotWriter> writer(std::in_place, folder.path, writing);
        std::optional<Trainer> saving(std::in_place, mix, any_delays());
        std::vector<Tensors> expected;
        std::vector<TrainingPosition> positions;
        std::list<SlowReader> readers;
        std::vector<double> losses;
        for (std::size_t step = 0; step < mix.steps; ++step) {
          losses = joined(losses, train(mix, *whole, step, step + 1));
          auto const state = (*whole).state();
          positions.push_back(state.position);
          expected.push_back(read_tensors(state));
          train(mix, **saving, step, step + 1);
          bool const is_last = step + 1 == mix.steps;
          if (any_flag("reads") || is_last) {
            auto const live = (**saving).state();
            RC_ASSERT(live.readers);
            if (any_flag("reads slowly")) {
              readers.emplace_back(live, static_cast<std::uint32_t>(step + 1));
            }
            if (any_flag("writes") || is_last) {
              RC_ASSERT(writer->save(live).mode == SnapshotMode::live);
            }
          }
        }
        if (any_flag("the trainer ends first")) {
          saving.reset();
          writer->wait();
        } else {
          writer.reset();
          require_equal((**saving).state(), (*whole).state());
        }
        for (auto& reader : readers) {
          reader.join();
          RC_ASSERT(reader.tensors == expected.at(reader.position.step - 1));
        }
        for (auto const& place : list_snapshots(folder.path)) {
          auto const step = place.step;
          Snapshot const snapshot(place.path);
          require_equal(snapshot.position(), positions.at(step - 1));
          RC_ASSERT(read_tensors(snapshot.state()) == expected.at(step - 1));
        }
        auto const places = list_snapshots(folder.path);
        auto const& from = places[any_number("from", 0, places.size() - 1)];
        auto const other = other_trainer(mix);
        (*other).restore(Snapshot(from.path).state());
        auto const rest = train(mix, *other, from.step, mix.steps);
        RC_ASSERT(rest ==
                  std::vector<double>(losses.end() - static_cast<std::ptrdiff_t>(rest.size()),
                                      losses.end()));
        require_equal((*other).state(), (*whole).state());
        RC_TAG(mix.staleness == 0 ? "sync" : "staleness 1",
               places.size() > 1 ? "several snapshots" : "one snapshot");
      },
      30);
}

TEST_CASE("20 steps in one go equal 7, a snapshot, and 13 on other devices, bit for bit") {
  struct Kind {
    std::string name;
    DType type;
    std::function<void(Mix&)> set;
  };
  std::vector<Kind> const kinds{
      {"fp32", DType::f32, [](Mix&) {}},
      {"fp32, clipped, dropout",
       DType::f32,
       [](Mix& mix) {
         mix.options.clip_norm = 0.5;
         mix.model.drops = true;
       }},
      {"bf16 with fp32 states, dropout", DType::bf16, [](Mix& mix) { mix.model.drops = true; }},
      {"bf16 rounded stochastically",
       DType::bf16,
       [](Mix& mix) { mix.options.state_type = StateType::declared; }},
      {"f16 with a loss scale, clipped",
       DType::f16,
       [](Mix& mix) {
         mix.options.loss_scale =
             LossScaleOptions{.initial = 0x1p24, .backoff = 1.0 / 64, .growth_interval = 2};
         mix.options.clip_norm = 0.5;
       }},
      {"a frozen base",
       DType::bf16,
       [](Mix& mix) {
         mix.model.frozen_input = true;
         mix.model.frozen_dense = 2;
       }},
  };
  auto params = rc::detail::configuration().testParams;
  params.maxSuccess = 2;
  for (auto const& kind : kinds) {
    for (int const staleness : {0, 1}) {
      CAPTURE(kind.name);
      CAPTURE(staleness);
      check_property(
          [&] {
            Mix mix;
            mix.model.types = {5, kind.type, kind.type};
            mix.model.dense = 3;
            mix.options.capacity = capacity;
            mix.options.micro_batches_per_round = 2;
            mix.options.seed = any_number("seed", 0, 999);
            mix.staleness = staleness;
            mix.adam = true;
            mix.steps = 20;
            mix.stop = 7;
            kind.set(mix);
            Trainer const whole(mix);
            auto const losses = train(mix, *whole, 0, 20);
            Trainer const first(mix);
            auto const begun = train(mix, *first, 0, 7);
            Trainer const other(mix);
            hand_over(mix, *first, *other, Way::files);
            RC_ASSERT(joined(begun, train(mix, *other, 7, 20)) == losses);
            require_equal((*other).state(), (*whole).state());
          },
          params);
    }
  }
}

}  // namespace resumed_training_test
