// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/roundpipe.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

using namespace roundpipe;
using Forward = ForwardContext<HostStream>;
using Backward = BackwardContext<HostStream>;

std::span<float> on_device(DeviceTensor const& t) { return {t.as<float>().device_pointer(), t.size()}; }

struct Bend {  // A layer of your own: y = x + a tanh(b x + c).
  bool first = false;  // The first layer reads x from the batch.
  ParameterTable parameters() const {
    return {{{"abc", {3}}, Initial::normal(0.5F), DecayGroup::decayed, {}}};
  }
  TensorTable boundary(BatchShape batch) const { return {{"x", {batch.rows}}}; }
  TensorTable input(BatchShape batch) const { return first ? TensorTable{} : boundary(batch); }
  TensorTable side_inputs(BatchShape batch) const { return first ? boundary(batch) : TensorTable{}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(Forward& ctx) const {
    auto x = on_device(first ? ctx.side_input(0) : ctx.input(0));
    auto y = on_device(ctx.output(0)), w = on_device(ctx.parameter(0));
    ctx.stream().launch([=] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        y[i] = x[i] + w[0] * std::tanh(w[1] * x[i] + w[2]);
      }
    });
  }
  void backward(Backward& ctx) const {
    auto x = on_device(first ? ctx.side_input(0) : ctx.input(0)), w = on_device(ctx.parameter(0));
    auto dy = on_device(ctx.output_gradient(0)), dw = on_device(ctx.parameter_gradient(0));
    auto dx = first ? dy : on_device(ctx.input_gradient(0));
    ctx.stream().launch([=] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        auto const t = std::tanh(w[1] * x[i] + w[2]), dz = dy[i] * w[0] * (1 - t * t);
        dw[0] += dy[i] * t;
        dw[1] += dz * x[i];
        dw[2] += dz;
        dx[i] = dy[i] + dz * w[1];
      }
    });
  }
};

struct SquaredError {  // The last layer makes the loss.
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape batch) const { return {{"x", {batch.rows}}}; }
  TensorTable side_inputs(BatchShape batch) const { return {{"target", {batch.rows}}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  auto loss_terms(std::span<HostTensor const>, BatchShape batch) const { return batch.rows; }
  void forward(Forward& ctx) const {
    auto x = on_device(ctx.input(0)), target = on_device(ctx.side_input(0));
    ctx.stream().launch([=, loss = ctx.loss().device_pointer(), scale = ctx.gradient_scale()] {
      *loss = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        *loss += scale * std::pow(x[i] - target[i], 2) / 2;
      }
    });
  }
  void backward(Backward& ctx) const {
    auto x = on_device(ctx.input(0)), target = on_device(ctx.side_input(0));
    ctx.stream().launch([=, dx = on_device(ctx.input_gradient(0)), scale = ctx.gradient_scale()] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        dx[i] = static_cast<float>(scale) * (x[i] - target[i]);
      }
    });
  }
};
