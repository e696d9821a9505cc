// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/serial/serial_trainer.hpp>

#include <roundpipe/runtime/weights_digest.hpp>
#include <support/error_of.hpp>
#include <support/faulty_layer.hpp>
#include <support/layer_archetype.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace serial_trainer_test {

namespace {

using namespace roundpipe;
using test::error_of;
using test::toy_model;
using test::ToyData;
using test::ToyModelOptions;

/// Plain gradient descent.
struct Descent {
  float rate = 0.25F;
  [[nodiscard]] std::size_t state_arrays() const { return 0; }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const>) const {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] -= rate * (context.gradient_factor * gradients[i]);
    }
  }
};

/// Replaces the weights by the gradient, so that a test can read the gradient.
struct ShowGradient {
  [[nodiscard]] std::size_t state_arrays() const { return 0; }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const>) const {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = context.gradient_factor * gradients[i];
    }
  }
};

/// A layer without inputs and outputs. The batch dictates its gradient: \c gradient has one row for
/// each micro-batch.
struct Dictated {
  std::string gradient{};
  DType dtype = DType::f32;
  std::int64_t size = 1;
  std::string key{};

  ParameterTable parameters() const {
    return {{{"w", {size}, dtype}, Initial::ones(), DecayGroup::decayed, key}};
  }
  TensorTable input(BatchShape) const { return {}; }
  TensorTable boundary(BatchShape) const { return {}; }
  TensorTable side_inputs(BatchShape) const { return {{gradient, {size}, DType::f32}}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>&) const {}
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([dw = ctx.parameter_gradient(0), given = ctx.side_input(0)] {
      for (std::size_t i = 0; i < dw.size(); ++i) {
        test::add(dw, i, test::load(given, i));
      }
    });
  }
};

/// The same as the last layer of the model; the loss is its first number.
struct DictatedLoss : Dictated {
  std::int64_t loss_terms(std::span<HostTensor const>, BatchShape) const { return 1; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch(
        [loss = ctx.loss(), given = ctx.side_input(0), scale = ctx.gradient_scale()] {
          *loss.device_pointer() = scale * static_cast<double>(test::load(given, 0));
        });
  }
};

/// The loss w^2 / 2 of a parameter w that begins at 1.
struct Parabola {
  ParameterTable parameters() const {
    return {{{"w", {1}, DType::f32}, Initial::ones(), DecayGroup::decayed, {}}};
  }
  TensorTable input(BatchShape) const { return {}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  std::int64_t loss_terms(std::span<HostTensor const>, BatchShape) const { return 1; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([loss = ctx.loss(), w = ctx.parameter(0), scale = ctx.gradient_scale()] {
      auto const value = static_cast<double>(test::load(w, 0));
      *loss.device_pointer() = scale * value * value / 2;
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch(
        [dw = ctx.parameter_gradient(0), w = ctx.parameter(0), scale = ctx.gradient_scale()] {
          test::add(dw, 0, static_cast<float>(scale) * test::load(w, 0));
        });
  }
};

/// The arguments of a layer's call.
struct Sight {
  bool backward = false;
  RandomKey random;
  BatchShape shape;
  bool saving = false;
  bool evaluating = false;
  std::size_t saved_bytes = 0;
  std::size_t workspace_bytes = 0;
  bool aligned = true;
};

/// Records its arguments.
template <bool Ends>
struct Watcher {
  std::shared_ptr<std::vector<Sight>> sights;

  ParameterTable parameters() const {
    return {{{"a", {3}, DType::bf16}, Initial::ones(), DecayGroup::decayed, {}},
            {{"b", {5}, DType::f32}, Initial::ones(), DecayGroup::decayed, {}}};
  }
  TensorTable input(BatchShape shape) const { return Ends ? outer(shape) : TensorTable{}; }
  TensorTable boundary(BatchShape shape) const { return Ends ? TensorTable{} : outer(shape); }
  Footprint footprint(BatchShape shape) const {
    return {static_cast<Bytes>(100 * shape.positions()),
            static_cast<Bytes>(300 * shape.positions())};
  }
  std::int64_t loss_terms(std::span<HostTensor const>, BatchShape) const
    requires Ends
  {
    return 1;
  }
  void forward(ForwardContext<HostStream>& ctx) const {
    auto sight = common(ctx);
    sight.saving = ctx.saving();
    if constexpr (Ends) {
      CHECK(ctx.loss().size() == 1);
      note(sight, {ctx.input(0), ctx.input(1)});
    } else {
      note(sight, {ctx.output(0), ctx.output(1)});
      CHECK(ctx.output(0).shape() == Shape{ctx.shape().rows});
      CHECK(ctx.loss().empty());
    }
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    auto sight = common(ctx);
    sight.backward = true;
    CHECK(ctx.parameter_gradient(0).dtype() == DType::f32);
    note(sight, {ctx.parameter_gradient(0), ctx.parameter_gradient(1)});
    if constexpr (Ends) {
      CHECK_FALSE(ctx.input_gradient(0).present());
      CHECK(ctx.input_gradient(1).present());
    } else {
      CHECK_FALSE(ctx.output_gradient(0).present());
      CHECK(ctx.output_gradient(1).present());
    }
  }

 private:
  [[nodiscard]] static TensorTable outer(BatchShape shape) {
    return {{"integers", {shape.rows}, DType::i32}, {"numbers", {shape.rows, 2}, DType::bf16}};
  }
  static Sight common(LayerContext<HostStream> const& ctx) {
    Sight sight;
    sight.random = ctx.random();
    sight.shape = ctx.shape();
    sight.evaluating = ctx.evaluating();
    CHECK(ctx.parameter(0).dtype() == DType::bf16);
    CHECK(ctx.parameter(1).dtype() == DType::f32);
    sight.saved_bytes = largest(ctx.saved());
    sight.workspace_bytes = largest(ctx.workspace());
    return sight;
  }
  /// How many bytes can be taken at once.
  static std::size_t largest(TensorCarver carver) {
    std::size_t bytes = 0;
    while (error_of([&, trial = carver]() mutable {
             static_cast<void>(trial.take({static_cast<std::int64_t>(bytes) + 1}, DType::u8));
           }).code() != Errc::over_budget) {
      ++bytes;
    }
    return bytes;
  }
  void note(Sight sight, std::vector<DeviceTensor> const& tensors) const {
    for (auto const& tensor : tensors) {
      sight.aligned =
          sight.aligned &&
          reinterpret_cast<std::uintptr_t>(tensor.device_pointer()) % tensor_alignment_bytes == 0;
    }
    sights->push_back(sight);
  }
};

template <class Trainer>
std::vector<std::vector<float>> all_weights(Trainer& trainer) {
  std::vector<std::vector<float>> result;
  trainer.for_each_parameter([&](auto const&, auto const&, HostSpan<float const> values) {
    result.emplace_back(values.begin(), values.end());
  });
  return result;
}

std::vector<float> random_values(std::size_t count, std::uint64_t seed) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(std::ldexp(normal({seed, 0, 0, 0, 0}, i), static_cast<int>(i % 7) * 3));
  }
  return values;
}

float rounded(float value) {
  return BFloat16(value);
}

}  // namespace

TEST_CASE("the gradient agrees with finite differences of the loss") {
  ToyModelOptions model{.dense = 2, .drops = true, .crosses = 2};
  for (auto const tied : {false, true}) {
    CAPTURE(tied);
    model.tied = model.dense_tied = tied;
    SerialOptions const options{
        .capacity = {2, 3}, .micro_batches_per_round = 2, .rounds = 2, .seed = 7};
    ToyData const data({{2, 3}, {1, 3}, {2, 1}, {2, 2}}, 11);

    SerialTrainer shown{toy_model(model), ShowGradient{}, options};
    shown.forward_backward(data.batch());
    shown.step();
    auto const gradients = all_weights(shown);

    SerialTrainer start{toy_model(model), Descent{}, options};
    auto const weights = all_weights(start);
    auto const description = describe(toy_model(model), options.capacity);
    auto const blocks = form_blocks(description);
    // The dropout must draw the same numbers: every loss is the first call of a new trainer.
    auto const loss_with = [&](std::size_t block, std::size_t tensor, std::vector<float> const& w) {
      SerialTrainer trainer{toy_model(model), Descent{}, options};
      auto const use = blocks.blocks[block].uses.front();
      auto const layer = blocks.use(use).layer;
      auto const& places = blocks.places[layer.index()];
      std::size_t index = 0;
      while (places[index].use != use || places[index].tensor != tensor) {
        ++index;
      }
      trainer.write_parameter(layer, index, w);
      return trainer.forward_backward(data.batch());
    };
    std::size_t number = 0;
    for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
      for (std::size_t t = 0; t < blocks.blocks[b].specs.size(); ++t, ++number) {
        for (std::size_t i = 0; i < weights[number].size(); ++i) {
          auto const slope_over = [&](float h) {
            auto up = weights[number];
            auto down = weights[number];
            up[i] += h;
            down[i] -= h;
            return (loss_with(b, t, up) - loss_with(b, t, down)) /
                   static_cast<double>(up[i] - down[i]);
          };
          // Richardson's extrapolation: the error of central differences is quadratic.
          auto const slope = (4 * slope_over(1.0F / 128) - slope_over(1.0F / 64)) / 3;
          CAPTURE(b);
          CAPTURE(t);
          CAPTURE(i);
          CHECK(static_cast<double>(gradients[number][i]) == doctest::Approx(slope).epsilon(5e-4));
        }
      }
    }
  }
}

TEST_CASE(
    "gradients add up in fp32 by micro-batch, are rounded once a round, then by round, call "
    "and layer") {
  for (auto const dtype : {DType::f32, DType::bf16}) {
    CAPTURE(name_of(dtype));
    std::size_t const micro_batches = 3;
    std::size_t const rounds = 2;
    std::size_t const calls = 2;
    std::size_t const size = 5;
    auto const count = micro_batches * rounds * size;
    SerialTrainer trainer{
        Sequential{Dictated{"first", dtype, 5, "key"},
                   Dictated{"own", dtype, 5, ""},
                   DictatedLoss{{"last", dtype, 5, "key"}}},
        ShowGradient{},
        SerialOptions{.micro_batches_per_round = micro_batches, .rounds = rounds}};
    std::vector<float> shared(size);
    std::vector<float> own(size);
    auto const add_round = [&](std::vector<float>& sums,
                               std::vector<float> const& values,
                               std::size_t round,
                               bool overwrites) {
      for (std::size_t i = 0; i < size; ++i) {
        float sum = 0;
        for (std::size_t m = 0; m < micro_batches; ++m) {
          sum += values[(round * micro_batches + m) * size + i];
        }
        sum = dtype == DType::bf16 ? rounded(sum) : sum;
        sums[i] = overwrites ? sum : sums[i] + sum;
      }
    };
    for (std::uint64_t step = 0; step < 2; ++step) {  // the second step must forget the first
      for (std::size_t call = 0; call < calls; ++call) {
        auto const first = random_values(count, 100 * step + call);
        auto const middle = random_values(count, 100 * step + call + 10);
        auto const last = random_values(count, 100 * step + call + 20);
        Batch batch(micro_batches * rounds, {});
        batch.set("first", first).set("own", middle).set("last", last);
        double loss = 0;
        for (std::size_t m = 0; m < micro_batches * rounds; ++m) {
          loss += 1.0 / static_cast<double>(micro_batches * rounds) *
                  static_cast<double>(last[m * size]);
        }
        CHECK(trainer.forward_backward(batch) == doctest::Approx(loss).epsilon(1e-12));
        for (std::size_t round = 0; round < rounds; ++round) {
          auto const overwrites = call == 0 && round == 0;
          add_round(shared, first, round, overwrites);
          add_round(shared, last, round, false);
          add_round(own, middle, round, overwrites);
        }
      }
      trainer.step();
      CHECK(all_weights(trainer) == std::vector{shared, own});
    }
  }
}

TEST_CASE("without staleness an iteration uses the weights of the previous step") {
  SerialTrainer trainer{Sequential{Parabola{}}, Descent{0.5F}, SerialOptions{}};
  float w = 1;
  for (int step = 0; step < 5; ++step) {
    CHECK(trainer.forward_backward(Batch(1, {})) == static_cast<double>(w * w / 2));
    trainer.step();
    w -= 0.5F * w;
    CHECK(all_weights(trainer) == std::vector<std::vector<float>>{{w}});
  }
}

TEST_CASE("with staleness 1 an iteration uses the weights of one step earlier") {
  SerialTrainer trainer{Sequential{Parabola{}}, Descent{0.5F}, SerialOptions{.staleness = 1}};
  float seen = 1;  // by the iteration
  float w = 1;
  for (int step = 0; step < 6; ++step) {
    CHECK(trainer.forward_backward(Batch(1, {})) == static_cast<double>(seen * seen / 2));
    auto const next = w - 0.5F * seen;
    seen = w;
    w = next;
    trainer.step();
    CHECK(all_weights(trainer) == std::vector<std::vector<float>>{{w}});
    if (step == 3) {
      SUBCASE("synchronize ends it") {
        trainer.synchronize();
        seen = w;
      }
      SUBCASE("evaluate sees the newest weights, and does not end it") {
        auto const evaluation = trainer.evaluate(Batch(3, {}));
        CHECK(evaluation.loss == doctest::Approx(w * w / 2).epsilon(1e-12));
        CHECK(evaluation.step == 4);
      }
      SUBCASE("or it continues") {}
    }
  }
}

TEST_CASE("clipping scales all gradients by one factor when their norm is too large") {
  auto const make = [](double clip_norm) {
    return SerialTrainer{Sequential{Dictated{"a", DType::f32, 1, ""}, DictatedLoss{{"b"}}},
                         ShowGradient{},
                         SerialOptions{.clip_norm = clip_norm}};
  };
  std::vector<float> const a{3};
  std::vector<float> const b{4};
  Batch batch(1, {});
  batch.set("a", a).set("b", b);
  for (auto const& [clip_norm, factor] : {std::pair{0.0, 1.0F}, {2.5, 0.5F}, {5.5, 1.0F}}) {
    CAPTURE(clip_norm);
    auto trainer = make(clip_norm);
    trainer.forward_backward(batch);
    trainer.step();
    auto const weights = all_weights(trainer);
    CHECK(weights[0][0] == doctest::Approx(3 * factor).epsilon(1e-5));
    CHECK(weights[1][0] == doctest::Approx(4 * factor).epsilon(1e-5));
  }
}

TEST_CASE("layers receive the facts of their call: keys, extents, modes, memory") {
  auto const sights = std::make_shared<std::vector<Sight>>();
  SerialTrainer trainer{
      Sequential{Watcher<false>{sights}, Watcher<true>{sights}},
      Descent{},
      SerialOptions{.capacity = {3, 2}, .micro_batches_per_round = 2, .rounds = 2, .seed = 99}};
  std::vector<BatchShape> const shapes{{3, 2}, {1, 1}, {2, 2}, {3, 1}};
  std::vector<BatchShape> const evaluated{{1, 2}, {3, 2}, {1, 1}, {1, 1}, {2, 2}};
  for (std::uint32_t call = 0; call < 3; ++call) {
    CAPTURE(call);
    sights->clear();
    trainer.forward_backward(Batch(shapes));
    REQUIRE(sights->size() == 16);
    for (std::size_t i = 0; i < 16; ++i) {
      auto const& sight = (*sights)[i];
      auto const m = i / 4;
      auto const layer = std::vector<std::uint32_t>{0, 1, 1, 0}[i % 4];
      CHECK(sight.backward == (i % 4 >= 2));
      CHECK(sight.random == RandomKey{99, call, layer, static_cast<std::uint32_t>(m), 0});
      CHECK(sight.shape == shapes[m]);
      CHECK(sight.saving == (i % 4 < 2));
      CHECK_FALSE(sight.evaluating);
      CHECK(sight.saved_bytes == 100 * static_cast<std::size_t>(shapes[m].positions()));
      CHECK(sight.workspace_bytes == 300 * static_cast<std::size_t>(shapes[m].positions()));
      CHECK(sight.aligned);
    }
    if (call == 1) {
      trainer.step();
      sights->clear();
      auto const evaluation = trainer.evaluate(Batch(evaluated));
      CHECK(evaluation.tables == std::vector<TensorTable>(5));
      REQUIRE(sights->size() == 10);
      for (std::size_t i = 0; i < 10; ++i) {
        auto const& sight = (*sights)[i];
        auto const m = i / 2;
        CHECK_FALSE(sight.backward);
        CHECK(
            sight.random ==
            RandomKey{99, 0, static_cast<std::uint32_t>(i % 2), static_cast<std::uint32_t>(m), 0});
        CHECK(sight.shape == evaluated[m]);
        CHECK_FALSE(sight.saving);
        CHECK(sight.evaluating);
        CHECK(sight.saved_bytes == 0);
      }
    }
  }
}

TEST_CASE("evaluate returns the loss and the last layer's results at each micro-batch's extents") {
  ToyModelOptions const model{.dense = 1, .drops = true};
  SerialTrainer trainer{toy_model(model), Descent{}, SerialOptions{.capacity = {2, 3}}};
  std::vector<BatchShape> const shapes{{2, 3}, {1, 2}, {2, 1}};
  ToyData data(shapes, 3);
  auto const evaluation = trainer.evaluate(data.batch());
  REQUIRE(evaluation.tables.size() == 3);
  double sum = 0;
  double terms = 0;
  std::size_t position = 0;
  for (std::size_t m = 0; m < 3; ++m) {
    CHECK(evaluation.tables[m][0].shape == Shape{shapes[m].rows, shapes[m].length, 3});
    auto const predictions = evaluation.result<float>(m, 0);
    REQUIRE(predictions.size() == 3 * static_cast<std::size_t>(shapes[m].positions()));
    for (std::size_t p = 0; p < predictions.size() / 3; ++p, ++position) {
      if (data.mask()[position] != 0) {
        terms += 1;
        for (std::size_t j = 0; j < 3; ++j) {
          auto const error = predictions[3 * p + j] - data.targets()[3 * position + j];
          sum += 0.5 * static_cast<double>(error) * static_cast<double>(error);
        }
      }
    }
  }
  CHECK(evaluation.loss == doctest::Approx(sum / terms).epsilon(1e-9));
  CHECK(trainer.evaluate(data.batch()).loss == evaluation.loss);
  CHECK(error_of([&] { static_cast<void>(evaluation.result<float>(3, 0)); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { static_cast<void>(evaluation.result<float>(0, 1)); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([&] { static_cast<void>(evaluation.result<double>(0, 0)); }).code() ==
        Errc::invalid_argument);

  SUBCASE("nothing to predict makes no loss") {
    data.mask().assign(data.mask().size(), 0);
    CHECK(trainer.evaluate(data.batch()).loss == 0);
    CHECK(trainer.evaluate(data.batch()).results == evaluation.results);
  }
}

TEST_CASE("the lengths of the micro-batches of a call change only roundings") {
  ToyModelOptions const model{.dense = 2, .crosses = 0};
  auto const losses = [&](std::vector<BatchShape> const& shapes) {
    ToyData const data(shapes, 21);
    SerialTrainer trainer{
        toy_model(model),
        Descent{},
        SerialOptions{.capacity = {4, 6}, .micro_batches_per_round = shapes.size(), .seed = 4}};
    std::vector<double> result;
    for (int i = 0; i < 5; ++i) {
      result.push_back(trainer.forward_backward(data.batch()));
      trainer.step();
    }
    return result;
  };
  auto const whole = losses({{4, 6}});
  auto const cut = losses({{1, 5}, {2, 2}, {3, 5}});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    CHECK(cut[i] == doctest::Approx(whole[i]).epsilon(1e-5));
  }
  CHECK(whole.back() < whole.front());
}

TEST_CASE("a bf16 training follows the fp32 training, and rounds only the master copy") {
  auto const run = [](DType dtype) {
    ToyModelOptions model{.dense = 2, .crosses = 1, .tied = true};
    model.types = {4, dtype, dtype};
    ToyData const data(2, {2, 3}, 5);
    SerialTrainer trainer{toy_model(model),
                          Descent{0.01F},
                          SerialOptions{.capacity = {2, 3}, .micro_batches_per_round = 2}};
    double loss = 0;
    for (int i = 0; i < 20; ++i) {
      loss = trainer.forward_backward(data.batch());
      trainer.step();
    }
    auto const weights = all_weights(trainer);
    bool representable = true;
    for (auto const& tensor : weights) {
      for (auto const w : tensor) {
        representable = representable && rounded(w) == w;
      }
    }
    CHECK_FALSE(representable);
    return loss;
  };
  CHECK(run(DType::bf16) == doctest::Approx(run(DType::f32)).epsilon(0.05));
}

TEST_CASE("equal seeds give equal weights, other seeds others") {
  auto const digest = [](std::uint64_t seed) {
    ToyData const data(2, {1, 2}, 1);
    SerialTrainer trainer{
        toy_model({.drops = true}),
        Descent{},
        SerialOptions{.capacity = {1, 2}, .micro_batches_per_round = 1, .rounds = 2, .seed = seed}};
    trainer.forward_backward(data.batch());
    trainer.step();
    return weights_digest(trainer);
  };
  CHECK(digest(1) == digest(1));
  CHECK(digest(1) != digest(2));
}

TEST_CASE("parameters are read, written and listed by name") {
  ToyModelOptions const model{.dense = 1, .tied = true};
  SerialTrainer trainer{
      toy_model(model), Descent{}, SerialOptions{.capacity = {1, 2}, .staleness = 1}};
  std::vector<std::string> names;
  trainer.for_each_parameter(
      [&](std::string const& name, Shape const&, HostSpan<float const>) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"0.weight", "1.weight", "1.bias", "2.shift"});
  std::vector<float> const values{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  trainer.write_parameter(LayerId(2), 1, values);  // shared with layer 0
  std::vector<float> read(12);
  trainer.read_parameter(LayerId(0), 0, read);
  CHECK(read == values);
  CHECK(all_weights(trainer)[0] == values);
  trainer.write_parameter("0.weight", std::vector<float>(12, 3.0F));
  trainer.read_parameter("0.weight", read);
  CHECK(read == std::vector<float>(12, 3.0F));

  std::vector<float> few(3);
  for (auto const& bad : {error_of([&] { trainer.read_parameter(LayerId(0), 0, few); }),
                          error_of([&] { trainer.write_parameter(LayerId(1), 0, few); }),
                          error_of([&] { trainer.read_parameter(LayerId(0), 1, read); }),
                          error_of([&] { trainer.read_parameter("1.weigh", read); }),
                          error_of([&] { trainer.read_gradient("0.weight", read); }),
                          error_of([&] { trainer.read_parameter(LayerId(3), 0, read); }),
                          error_of([&] { trainer.read_parameter(LayerId::none(), 0, read); })}) {
    CHECK(bad.code() == Errc::invalid_argument);
  }
}

TEST_CASE("a written parameter reaches the next call at once, with staleness too") {
  SerialTrainer trainer{Sequential{Parabola{}}, Descent{}, SerialOptions{.staleness = 1}};
  trainer.forward_backward(Batch(1, {}));
  trainer.step();
  trainer.write_parameter(LayerId(0), 0, std::vector<float>{4});
  CHECK(trainer.forward_backward(Batch(1, {})) == 8);
}

TEST_CASE("a loss or a norm that is not finite stops the training, and the error names the step") {
  auto const infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values{1, 1};
  Batch batch(2, {});
  batch.set("g", values);
  SerialTrainer trainer{Sequential{DictatedLoss{{"g"}}},
                        Descent{},
                        SerialOptions{.micro_batches_per_round = 2, .clip_norm = 1}};
  trainer.forward_backward(batch);
  trainer.step();
  auto const weights = all_weights(trainer);
  SUBCASE("the loss") {
    values[1] = std::numeric_limits<float>::quiet_NaN();
    auto const error = error_of([&] { trainer.forward_backward(batch); });
    CHECK(error.code() == Errc::not_finite);
    CHECK(error.message() == "the loss of micro-batch 1 is nan in step 2");
    // The iteration is lost, but not the trainer.
    CHECK(error_of([&] { trainer.step(); }).code() == Errc::invalid_argument);
  }
  SUBCASE("the norm") {
    values[0] = std::numeric_limits<float>::max();
    values[1] = std::numeric_limits<float>::max();
    trainer.forward_backward(batch);  // the loss halves both
    auto const error = error_of([&] { trainer.step(); });
    CHECK(error.code() == Errc::not_finite);
    CHECK(error.message() == "the gradient's norm at step 2 is not finite");
  }
  CHECK(all_weights(trainer) == weights);
  values = {1, 1};
  batch.set("g", values);
  trainer.forward_backward(batch);
  trainer.step();
  CHECK(all_weights(trainer)[0][0] < weights[0][0]);
  CHECK(all_weights(trainer)[0][0] > -infinity);
}

TEST_CASE("the norm to clip at is that of all gradients together") {
  ToyData const data(1, {1, 2}, 1);
  auto const model = toy_model({.dense = 2});
  auto const make = [&](double clip_norm) {
    return SerialTrainer{
        model, Descent{}, SerialOptions{.capacity = {1, 2}, .clip_norm = clip_norm}};
  };
  auto free = make(0);
  auto const before = all_weights(free);
  free.forward_backward(data.batch());
  double squares = 0;
  free.for_each_parameter([&](std::string const& name, Shape const& shape, auto const&) {
    std::vector<float> gradient(shape.size());
    free.read_gradient(name, gradient);
    for (auto const g : gradient) {
      squares += static_cast<double>(g) * static_cast<double>(g);
    }
  });
  free.step();
  auto const moved = all_weights(free);
  auto clipped = make(std::sqrt(squares) / 4);
  clipped.forward_backward(data.batch());
  clipped.step();
  auto const held = all_weights(clipped);
  for (std::size_t p = 0; p < before.size(); ++p) {
    for (std::size_t i = 0; i < before[p].size(); ++i) {
      CHECK(held[p][i] - before[p][i] ==
            doctest::Approx((moved[p][i] - before[p][i]) / 4).epsilon(1e-3));
    }
  }
}

TEST_CASE("invalid arguments are refused") {
  ToyData const data(2, {1, 2}, 1);
  SerialOptions const good{.capacity = {1, 2}, .micro_batches_per_round = 1, .rounds = 2};
  auto const code = [&](auto const& f) { return error_of(f).code(); };

  SUBCASE("options") {
    auto const refused = [&](SerialOptions const& options) {
      return code([&] { SerialTrainer{toy_model({}), Descent{}, options}; }) ==
             Errc::invalid_argument;
    };
    CHECK_FALSE(refused(good));
    CHECK(refused({.capacity = {0, 2}}));
    CHECK(refused({.capacity = {1, -2}}));
    CHECK(refused({.micro_batches_per_round = 0}));
    CHECK(refused({.rounds = 0}));
    CHECK(refused({.clip_norm = -1}));
    CHECK(refused({.clip_norm = std::numeric_limits<double>::quiet_NaN()}));
    CHECK(refused({.staleness = 2}));
    CHECK(refused({.staleness = -1}));
  }
  SUBCASE("batches, and the training continues") {
    SerialTrainer trainer{toy_model({}), Descent{}, good};
    trainer.forward_backward(data.batch());
    auto const other_count =
        error_of([&] { trainer.forward_backward(ToyData(3, {1, 2}, 1).batch()); });
    CHECK(other_count.code() == Errc::invalid_argument);
    CHECK(other_count.message() ==
          "a call has 1 x 2 micro-batches (per round x rounds), the batch 3");
    CHECK(code([&] { trainer.forward_backward(ToyData(1, {1, 2}, 1).batch()); }) ==
          Errc::invalid_argument);
    CHECK(code([&] { trainer.forward_backward(ToyData(2, {1, 3}, 1).batch()); }) ==
          Errc::invalid_argument);
    CHECK(code([&] { static_cast<void>(trainer.evaluate(ToyData(2, {2, 1}, 1).batch())); }) ==
          Errc::invalid_argument);
    CHECK(code([&] { trainer.forward_backward(Batch(2, {1, 2})); }) == Errc::invalid_argument);
    trainer.step();
  }
  SUBCASE("steps without a call") {
    SerialTrainer trainer{toy_model({}), Descent{}, good};
    CHECK(code([&] { trainer.step(); }) == Errc::invalid_argument);
    trainer.forward_backward(data.batch());
    trainer.step();
    CHECK(code([&] { trainer.step(); }) == Errc::invalid_argument);
  }
}

TEST_CASE("a layer that throws is named, and the training continues") {
  using test::FaultyLayer;
  ToyData const data(2, {1, 2}, 1);
  for (auto const& fault : FaultyLayer::all()) {
    bool throws = true;
    auto const at_times = [&](auto const& f) {
      return [&throws, f](HostStream& stream) {
        if (throws && f) {
          f(stream);
        }
      };
    };
    FaultyLayer const layer{{at_times(fault.forward), at_times(fault.backward)}};
    SerialTrainer trainer{Sequential{test::ToyInput{}, layer, test::ToyLoss{}},
                          Descent{},
                          SerialOptions{.capacity = {1, 2}, .micro_batches_per_round = 2}};
    auto const error = error_of([&] { trainer.forward_backward(data.batch()); });
    CHECK(error.code() == fault.code);
    auto const direction = std::string(fault.forward ? "forward" : "backward");
    CHECK(error.message().find(direction + " of layer 1 (toy scale), micro-batch 0: ") == 0);
    throws = false;
    trainer.forward_backward(data.batch());
    trainer.step();
  }
}

TEST_CASE("the smallest layers and the smallest optimizer can be trained") {
  struct Stream {};
  struct SmallestOptimizer : test::CopyOnly {
    using CopyOnly::CopyOnly;
    test::ConvertsTo<std::size_t> state_arrays() const { return {}; }
    void update(UpdateContext const&,
                HostSpan<float>,
                HostSpan<float const>,
                std::span<HostSpan<float> const>) const {}
  };
  using First = test::LayerArchetype<Stream>;
  using Last = test::LossLayerArchetype<Stream>;
  using Model = decltype(Sequential{First(0), Last(0)});
  SerialTrainer<Model, SmallestOptimizer, Stream> trainer(
      Sequential{First(0), Last(0)}, SmallestOptimizer(0), {});
  CHECK(trainer.forward_backward(Batch(1, {})) == 0);
  trainer.step();
  CHECK(trainer.evaluate(Batch(2, {})).tables.size() == 2);
  CHECK(weights_digest(trainer) == Digest{}.value());
}

TEST_CASE("f16 parameters without fp32 weights are refused, as in the pipeline") {
  auto const model = test::toy_model({.types = {.parameter = DType::f16}, .dense = 1});
  auto const error = error_of([&] {
    SerialTrainer(
        model, Descent{}, SerialOptions{.capacity = {1, 1}, .state_type = StateType::declared});
  });
  CHECK(error.code() == Errc::invalid_argument);
}

}  // namespace serial_trainer_test
