// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The code of docs/00_quickstart.md about gradient accumulation; docs_are_tested.cmake looks for it
// here.

#include <roundpipe/roundpipe.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

using namespace roundpipe;

/// y = w x
struct Scale {
  ParameterTable parameters() const { return {{{"w", {1}}, Initial::ones()}}; }
  TensorTable input(BatchShape) const { return {}; }
  TensorTable side_inputs(BatchShape s) const { return {{"x", {s.rows}}}; }
  TensorTable boundary(BatchShape s) const { return {{"x", {s.rows}}}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.side_input<float>("x"),
                         w = ctx.parameter<float>("w"),
                         y = ctx.output<float>("x")] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        y[i] = w[0] * x[i];
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.side_input<float>("x"),
                         dy = ctx.output_gradient<float>("x"),
                         dw = ctx.parameter_gradient<float>("w")] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        dw[0] += dy[i] * x[i];
      }
    });
  }
};

struct SharedError {  // The mean of (x - y)^2 / 2, times the call's share of its step.
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape s) const { return {{"x", {s.rows}}}; }
  TensorTable side_inputs(BatchShape s) const { return {{"y", {s.rows}}, {"share", {1}}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  auto loss_terms(HostSpan<HostTensor const>, BatchShape s) const { return s.rows; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.input<float>("x"),
                         y = ctx.side_input<float>("y"),
                         share = ctx.side_input<float>("share"),
                         loss = ctx.loss(),
                         scale = ctx.gradient_scale()] {
      loss[0] = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        loss[0] += share[0] * scale / 2 * (x[i] - y[i]) * (x[i] - y[i]);
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.input<float>("x"),
                         y = ctx.side_input<float>("y"),
                         share = ctx.side_input<float>("share"),
                         dx = ctx.input_gradient<float>("x"),
                         scale = static_cast<float>(ctx.gradient_scale())] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        dx[i] = share[0] * scale * (x[i] - y[i]);
      }
    });
  }
};

}  // namespace

TEST_CASE("calls of unequal size add up to the mean of their step") {
  Sequential const model{Scale{}, SharedError{}};
  HostBackend backend;
  std::vector<float> const x{1, 2, 3, 4, 5, 6};
  std::vector<float> const y{2, 1, 0, 1, 2, 3};
  std::vector<float> const more_x{-4, 9};
  std::vector<float> const more_y{1, -7};

  PipelineOptions options{.capacity = {.rows = 6}, .micro_batches_per_round = 1};
  options.calls_per_step = 2;
  Pipeline pipeline{model, AdamW(), backend, options};

  float const share[] = {6.0F / 8};  // this call's share of the step's 8 rows
  auto loss = pipeline.forward_backward(Batch(1, {6}).set("x", x).set("y", y).set("share", share));
  float const other_share[] = {2.0F / 8};
  loss += pipeline.forward_backward(
      Batch(1, {2}).set("x", more_x).set("y", more_y).set("share", other_share));

  std::vector<float> gradient(1);
  pipeline.read_gradient("0.w", gradient);
  pipeline.step();

  double mean = 0;
  double slope = 0;
  auto const add = [&](std::vector<float> const& from, std::vector<float> const& to) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      auto const error = static_cast<double>(from[i] - to[i]);  // w is 1
      mean += error * error / 2 / 8;
      slope += error * static_cast<double>(from[i]) / 8;
    }
  };
  add(x, y);
  add(more_x, more_y);
  CHECK(loss == doctest::Approx(mean));
  CHECK(static_cast<double>(gradient[0]) == doctest::Approx(slope));
}
