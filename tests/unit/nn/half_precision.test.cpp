// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <support/nn_harness.hpp>
#include <support/toy_layers.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace half_precision_test {

using namespace roundpipe;
using namespace roundpipe::test;

using Ops32 = nn::HostOps<float>;
using Numbers = std::vector<double>;

constexpr double largest_scale = 0x1p16;  // a customary initial loss scale
BatchShape const shape{2, 6};

nn::TransformerConfig small(DType type) {
  nn::TransformerConfig config;
  config.vocabulary = 37;
  config.hidden = 16;
  config.heads = 4;
  config.kv_heads = 2;
  config.intermediate = 24;
  config.query_key_norm = true;
  config.storage = config.parameter = type;
  return config;
}

ToyTypes toy(DType type) {
  return {4, type, type};
}

bool all_finite(Numbers const& numbers) {
  for (auto const n : numbers) {
    if (!std::isfinite(n)) {
      return false;
    }
  }
  return true;
}

/// Copies the numbers of \p from to \p to, so that both compute with the same numbers.
template <class L>
void share_numbers(LayerRunner<L> const& from, LayerRunner<L>& to) {
  auto const copy = [](std::vector<DeviceTensor> const& a, std::vector<DeviceTensor> const& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].present() && is_floating(a[i].dtype())) {
        write(b[i], read(a[i]));
      }
    }
  };
  copy(from.tensors.parameters, to.tensors.parameters);
  copy(from.tensors.inputs, to.tensors.inputs);
  copy(from.tensors.output_gradients, to.tensors.output_gradients);
}

/// Runs both passes of one layer with f16 and with f32 tensors and compares the results.
template <class L>
void check_near(L const& half, L const& single, double scale = 1.0 / 12) {
  LayerRunner<L> narrow(half, shape);
  LayerRunner<L> wide(single, shape);
  INFO(half.name());
  share_numbers(narrow, wide);
  for (auto* const runner : {&narrow, &wide}) {
    fill_unwritten(*runner);
    runner->call.gradient_scale = scale;
    for (DeviceTensor const& t : runner->tensors.inputs) {
      if (t.dtype() == DType::i32) {
        write(t, std::vector<std::int32_t>(t.size(), 1));
      }
    }
  }
  auto const loss = narrow.forward(true);
  CHECK(std::isfinite(loss));
  CHECK(loss == doctest::Approx(wide.forward(true)).epsilon(2e-3));
  narrow.backward();
  wide.backward();
  auto const compare = [](std::vector<DeviceTensor> const& a, std::vector<DeviceTensor> const& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].present() && is_floating(a[i].dtype())) {
        CHECK(all_finite(read(a[i])));
        CHECK(relative_difference(read(a[i]), read(b[i])) < 4e-3);
      }
    }
  };
  compare(narrow.tensors.input_gradients, wide.tensors.input_gradients);
  compare(narrow.tensors.parameter_gradients, wide.tensors.parameter_gradients);
  for (DeviceTensor const& t : narrow.tensors.parameter_gradients) {
    CHECK(t.dtype() == DType::f32);
  }
  CHECK(narrow.forward(true) == loss);  // also restores the outputs
  static_cast<void>(wide.forward(true));
  compare(narrow.tensors.outputs, wide.tensors.outputs);
}

template <template <class> class L>
void check_transformer_layer(double scale = 1.0 / 12) {
  check_near(L<Ops32>(small(DType::f16)), L<Ops32>(small(DType::f32)), scale);
}

TEST_CASE("toy layers of f16 compute nearly the same as toy layers of f32") {
  check_near(ToyInput{toy(DType::f16)}, ToyInput{toy(DType::f32)});
  check_near(ToyDense{toy(DType::f16)}, ToyDense{toy(DType::f32)});
  check_near(ToyScale{toy(DType::f16)}, ToyScale{toy(DType::f32)});
  check_near(ToyDropout{toy(DType::f16)}, ToyDropout{toy(DType::f32)});
  check_near(ToyTwoOut{toy(DType::f16)}, ToyTwoOut{toy(DType::f32)});
  check_near(ToyCross{toy(DType::f16)}, ToyCross{toy(DType::f32)});
  check_near(ToyTwoIn{toy(DType::f16)}, ToyTwoIn{toy(DType::f32)});
  check_near(ToyLoss{toy(DType::f16)}, ToyLoss{toy(DType::f32)});
}

TEST_CASE("transformer layers of f16 compute nearly the same as transformer layers of f32") {
  check_transformer_layer<nn::TokenEmbedding>();
  check_transformer_layer<nn::TransformerBlock>();
  check_transformer_layer<nn::LanguageModelHead>();
}

TEST_CASE("loss layers of f16 tolerate a large loss scale") {
  check_near(ToyLoss{toy(DType::f16)}, ToyLoss{toy(DType::f32)}, largest_scale / 12);
  check_transformer_layer<nn::LanguageModelHead>(largest_scale / 12);
}

TEST_CASE("a power of two as loss scale scales the loss and the gradients of an f32 head exactly") {
  using Head = nn::LanguageModelHead<Ops32>;
  LayerRunner<Head> runner(Head(small(DType::f32)), shape);
  fill_unwritten(runner);
  auto const run = [&](double scale) {
    runner.call.gradient_scale = scale / 12;
    runner.parameter_gradients.zero();
    Numbers all{runner.forward(true)};
    runner.backward();
    for (auto const* const list :
         {&runner.tensors.input_gradients, &runner.tensors.parameter_gradients}) {
      for (DeviceTensor const& t : *list) {
        auto const numbers = read(t);
        all.insert(all.end(), numbers.begin(), numbers.end());
      }
    }
    for (auto& n : all) {
      n /= scale;
    }
    return all;
  };
  CHECK(run(largest_scale) == run(1));
}

TEST_CASE("the gradients of the logits of an f16 head are not stored in f16") {
  using Head = nn::LanguageModelHead<Ops32>;
  // With one term and this scale, the gradient of the labelled logit is about -2^16.
  LayerRunner<Head> runner(Head(small(DType::f16)), {1, 1});
  write(runner.tensors.side_inputs[0], std::vector<std::int32_t>{3});
  write_random(runner.tensors.parameters[1], 5, 1e-3, 0.0);
  runner.call.gradient_scale = largest_scale;
  static_cast<void>(runner.forward(true));
  runner.backward();
  for (DeviceTensor const& t : runner.tensors.parameter_gradients) {
    CHECK(all_finite(read(t)));
  }
  CHECK(all_finite(read(runner.tensors.input_gradients[0])));
}

TEST_CASE(
    "a boundary gradient beyond the range of f16 becomes infinite, so that overflow is detected") {
  LayerRunner<ToyLoss> runner(ToyLoss{toy(DType::f16)}, shape);
  fill_unwritten(runner);
  runner.call.gradient_scale = 1e7;
  static_cast<void>(runner.forward(true));
  runner.backward();
  CHECK_FALSE(all_finite(read(runner.tensors.input_gradients[0])));
  CHECK(all_finite(read(runner.tensors.parameter_gradients[1])));
}

}  // namespace half_precision_test
