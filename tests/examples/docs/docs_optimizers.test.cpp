// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The code of docs/08_optimizers.md; docs_are_tested.cmake looks for it here.

#include <roundpipe/roundpipe.hpp>
#include <support/optimizer_check.hpp>
#include <support/pipeline_runs.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

using namespace roundpipe;

// Lion (Chen et al. 2023, arXiv:2302.06675, algorithm 2).
struct Lion {
  LearningRate rate = LearningRate::constant(1e-4);
  float beta1 = 0.9F;
  float beta2 = 0.99F;
  float decay = 0.1F;

  std::size_t state_arrays() const { return 1; }

  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    auto const a = static_cast<float>(rate(context.step));
    auto const shrink = context.parameter.decay == DecayGroup::decayed ? decay : 0.0F;
    auto const m = states[0];
    for (std::size_t i = 0; i < weights.size(); ++i) {
      auto const g = gradients[i] * context.gradient_factor;
      auto const c = beta1 * m[i] + (1 - beta1) * g;
      auto const sign = c > 0 ? 1.0F : c < 0 ? -1.0F : 0.0F;
      weights[i] -= a * (sign + shrink * weights[i]);
      m[i] = beta2 * m[i] + (1 - beta2) * g;
    }
  }
};

static_assert(Optimizer<Lion>);

// LAMB (You et al. 2020, arXiv:1904.00962, algorithm 2).
struct Lamb {
  LearningRate rate = LearningRate::constant(1e-3);
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double decay = 0.01;

  std::size_t state_arrays() const { return 2; }
  bool updates_whole(ParameterInfo const&) const { return true; }

  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    auto const t = static_cast<double>(context.step);
    auto const unbias1 = 1 / (1 - std::pow(beta1, t));
    auto const unbias2 = 1 / (1 - std::pow(beta2, t));
    auto const shrink = context.parameter.decay == DecayGroup::decayed ? decay : 0;
    auto const m = states[0];
    auto const v = states[1];
    auto const move = [&](std::size_t i) {
      return unbias1 * m[i] / (std::sqrt(unbias2 * v[i]) + epsilon) + shrink * weights[i];
    };
    double weight_squares = 0;
    double move_squares = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      auto const g = static_cast<double>(gradients[i]) * context.gradient_factor;
      m[i] = static_cast<float>(beta1 * m[i] + (1 - beta1) * g);
      v[i] = static_cast<float>(beta2 * v[i] + (1 - beta2) * g * g);
      weight_squares += static_cast<double>(weights[i]) * weights[i];
      move_squares += move(i) * move(i);
    }
    auto const trust =
        weight_squares > 0 && move_squares > 0 ? std::sqrt(weight_squares / move_squares) : 1;
    auto const a = rate(context.step) * trust;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = static_cast<float>(weights[i] - a * move(i));
    }
  }
};

static_assert(HasWholeUpdates<Lamb>);

/// Whether pipelines give the bits of a serial training, for weights and states of several types.
template <class O>
void check_training(O const& optimizer) {
  for (auto const kept : {StateType::fp32, StateType::declared}) {
    PipelineOptions options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 3};
    options.state_type = kept;
    options.optimizer_threads = 3;
    auto const model = test::toy_model(
        {.types = {.width = 8, .parameter = DType::bf16}, .dense = 3, .tied = true});
    test::ToyData const data(3, {2, 3}, 1);
    auto const batch = data.batch();
    for (int const staleness : {0, 1}) {
      auto const serial = test::train_serially(model, optimizer, options, staleness, batch, 4);
      CHECK(serial.front() != serial.back());
      HostBackend backend(test::host_devices(2));
      Policies const policies{.protocol = LayerEventProtocol(staleness)};
      Pipeline pipeline{model, optimizer, backend, options, policies};
      CHECK(test::train(pipeline, batch, 4) == serial);
    }
  }
}

}  // namespace

TEST_CASE("groups, rates and frozen steps of the page") {
  auto const groups = [](ParameterInfo const& parameter, std::uint64_t step) {
    ParameterGroup group = declared_group(parameter, step);  // as the layers say
    if (parameter.name.ends_with("bias")) {
      group.rate = 2;  // biases learn faster
    } else if (step <= 2) {
      group.frozen = true;  // and alone in the first two steps
    }
    return group;
  };
  auto const rate = [](std::uint64_t step) { return 3e-4 / std::sqrt(static_cast<double>(step)); };
  AdamW const optimizer({.rate = rate, .groups = groups});
  CHECK(optimizer.options().rate(9) == doctest::Approx(1e-4));
  CHECK(freezes(optimizer, {.name = "layer.weight"}, 2));
  CHECK_FALSE(freezes(optimizer, {.name = "layer.weight"}, 3));
  CHECK_FALSE(freezes(optimizer, {.name = "layer.bias"}, 2));
  check_training(optimizer);
}

TEST_CASE("Lion moves by the rate against the sign, whatever the cuts") {
  Lion const lion{.rate = LearningRate::constant(0.25)};
  std::vector<float> weights{1, 1, 1};
  std::vector<float> momentum{0, 0, -2};
  std::vector<float> const gradients{4, -8, 4};
  std::vector<HostSpan<float>> const states{momentum};
  lion.update({.step = 1}, weights, gradients, states);
  CHECK(weights[0] == doctest::Approx(1 - 0.25 * (1 + 0.1)));
  CHECK(weights[1] == doctest::Approx(1 - 0.25 * (-1 + 0.1)));
  CHECK(weights[2] == doctest::Approx(1 - 0.25 * (-1 + 0.1)));  // c is -1.4: the momentum decides
  CHECK(momentum[2] == doctest::Approx(0.99 * -2 + 0.01 * 4));
  CHECK(test::parts_do_not_matter(lion));
  check_training(lion);
}

TEST_CASE("LAMB moves each parameter by the rate times its norm") {
  Lamb const lamb{.rate = LearningRate::constant(0.125)};
  std::vector<float> weights{3, 0, -4};
  std::vector<float> m(3);
  std::vector<float> v(3);
  std::vector<float> const gradients{1e-3F, -5, 70};
  std::vector<HostSpan<float>> const states{m, v};
  auto const before = weights;
  lamb.update({.step = 1}, weights, gradients, states);
  double squares = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto const moved = static_cast<double>(weights[i]) - before[i];
    squares += moved * moved;
    CHECK(moved * gradients[i] < 0);
  }
  CHECK(std::sqrt(squares) == doctest::Approx(0.125 * 5));
  CHECK_FALSE(test::parts_do_not_matter(lamb));  // so it asks for whole parameters
  check_training(lamb);
}
