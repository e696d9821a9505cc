// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/skip_layer.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/skip.hpp>
#include <roundpipe/testing/check_layer.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/toy_skips.hpp>

#include <doctest/doctest.h>

#include <string>

namespace skip_layer_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

template <SkipRole role, class L>
auto with_role(L layer) {
  return SkipLayer<L, role>(layer, last_output(layer));
}

/// Checks the gradients of \p layer against finite differences, and all other rules of layers.
template <class L>
void check(L const& layer) {
  HostBackend backend;
  testing::LayerCheckOptions options;
  options.capacity = {.rows = 2, .length = 2};
  options.smaller = {.rows = 1, .length = 2};
  testing::require_sound(layer, backend, options);
}

}  // namespace

TEST_CASE("a layer that forks, one that is passed and one that reads keep all rules of layers") {
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(name_of(type));
    ToyTypes const types{.width = 3, .parameter = DType::f32, .boundary = type};
    check(with_role<SkipRole::fork>(ToyDense{types}));
    check(with_role<SkipRole::past>(ToyDense{types}));
    check(with_role<SkipRole::reads>(ToyJoin{types}));
  }
}

TEST_CASE("skip layers in skip layers keep all rules of layers") {
  ToyDense const dense{};
  check(with_role<SkipRole::past>(with_role<SkipRole::fork>(dense)));
  check(with_role<SkipRole::past>(with_role<SkipRole::reads>(ToyJoin{})));
  check(with_role<SkipRole::fork>(with_role<SkipRole::past>(dense)));
}

TEST_CASE("integers are carried, and have no gradient") {
  check(with_role<SkipRole::fork>(ToyMark{}));
  check(SkipLayer<ToyDense, SkipRole::past>(ToyDense{}, last_output(ToyMark{})));
  check(SkipLayer<ToyMark, SkipRole::past>(ToyMark{}, last_output(ToyMark{})));
}

TEST_CASE("a skip layer says of itself what its layer says, beside the carried tensor") {
  BatchShape const shape{.rows = 2, .length = 3};
  ToyDense const dense{};
  auto const own = facts_of(dense, shape);
  auto const skips = facts_of(with_role<SkipRole::past>(dense), shape);
  CHECK(skips.name == own.name);
  CHECK(skips.parameters.size() == own.parameters.size());
  CHECK(skips.parameters[0].tensor == own.parameters[0].tensor);
  CHECK(skips.save_levels == own.save_levels);
  CHECK(skips.footprint.saved_bytes == own.footprint.saved_bytes);
  CHECK(skips.footprint.workspace_bytes == own.footprint.workspace_bytes);
  CHECK(skips.work.forward_flops == own.work.forward_flops);
  CHECK(skips.input.size() == 2);
  CHECK(skips.input == skips.boundary);
  CHECK(skips.boundary[1] == own.boundary[0]);

  auto const input = facts_of(with_role<SkipRole::fork>(ToyInput{}), shape);
  CHECK(input.side_inputs == facts_of(ToyInput{}, shape).side_inputs);
  CHECK(!input.backward_reads_parameters);
  CHECK(!HasSideInputs<SkipLayer<ToyDense, SkipRole::past>>);
  CHECK(!HasBackwardReads<SkipLayer<ToyDense, SkipRole::past>>);
}

TEST_CASE("a layer that does not carry what it says is found") {
  enum class Lie { none, tensor, gradient, writes };
  struct Liar : ToyMark {
    Lie lie = Lie::none;
    TensorTable input(BatchShape shape) const { return ToyJoin{types}.input(shape); }
    TensorTable boundary(BatchShape shape) const { return input(shape); }
    Carries carries() const { return {.tensors = 1, .gradients = 1}; }
    void forward(ForwardContext<HostStream>& ctx) const {
      ctx.stream().copy(ctx.output(0), ctx.input(0));
      if (ctx.output(1).device_pointer() != ctx.input(1).device_pointer()) {
        ctx.stream().copy(ctx.output(1), ctx.input(lie == Lie::tensor ? 0 : 1));
      } else if (lie == Lie::writes) {
        ctx.stream().launch([skip = ctx.output<float>(1)] { skip[0] += 1; });
      }
    }
    void backward(BackwardContext<HostStream>& ctx) const {
      ctx.stream().copy(ctx.input_gradient(0), ctx.output_gradient(0));
      if (ctx.input_gradient(1).device_pointer() != ctx.output_gradient(1).device_pointer()) {
        ctx.stream().copy(ctx.input_gradient(1), ctx.output_gradient(lie == Lie::gradient ? 0 : 1));
      }
    }
  };
  auto const finding = [](Lie lie) {
    HostBackend backend;
    Liar liar;
    liar.lie = lie;
    auto const findings = testing::check_layer(liar, backend);
    return findings.empty() ? "" : findings.front();
  };
  CHECK(finding(Lie::none) == "");
  CHECK(contains(finding(Lie::tensor), "with carried tensors in place: output 'skip'[0] is"));
  CHECK(contains(finding(Lie::gradient), "in place: input gradient 'skip'[0] is"));
  CHECK(
      contains(finding(Lie::writes), "forward writes to input 'skip'[0], which it may only read"));
}

TEST_CASE("a fork needs workspace for the sum of two gradients, the other skip layers need none") {
  BatchShape const shape{.rows = 2, .length = 3};
  ToyDense const dense{};
  CHECK(facts_of(with_role<SkipRole::fork>(dense), shape).footprint.workspace_bytes ==
        align_up(dense.footprint(shape).workspace_bytes) + 2 * 3 * 4 * sizeof(float));
  CHECK(facts_of(with_role<SkipRole::reads>(ToyJoin{}), shape).footprint.workspace_bytes == 0);
}

TEST_CASE("there is nothing to carry from a layer that hands over nothing") {
  auto const error = error_of([] { last_output(ToyLoss{})({.rows = 1, .length = 1}); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(contains(error.message(),
                 "'toy loss' begins a skip connection, but hands over no tensor to carry"));
}

}  // namespace skip_layer_test
