// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The linear maps of a transformer block in one call, each with its bias, its low-rank
/// adapter, and the dropout behind it.

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/low_rank_adapter.hpp>
#include <roundpipe/nn/transformer_block_parameters.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace roundpipe::nn::detail {

/// The maps of a block, whose parameters have the places \p places, for a call with a \p Context.
/// All arguments must outlive it.
template <Ops O, class Context>
class BlockMaps {
 public:
  using Parameter = BlockParameters::Parameter;

  BlockMaps(TransformerConfig const& config,
            BlockParameters const& places,
            Context const& ctx,
            O const& ops,
            AdapterMemory const& memory)
      : config_(config), places_(places), ctx_(ctx), ops_(ops), memory_(memory) {}

  [[nodiscard]] DeviceTensor const& weight(Parameter p) const { return ctx_.parameter(places_[p]); }
  /// The sum of gradients of \p p. Not present() where it is frozen.
  [[nodiscard]] DeviceTensor const& sum(Parameter p) const {
    return ctx_.parameter_gradient(places_[p]);
  }
  /// Whether \ref add_gradients reads the input of one of \p maps.
  [[nodiscard]] bool read_input(std::initializer_list<Parameter> maps) const {
    for (auto const p : maps) {
      if (sum(p).present() ||
          (places_.adapts(p) && (sum(BlockParameters::lora_a_of(p)).present() ||
                                 sum(BlockParameters::lora_b_of(p)).present()))) {
        return true;
      }
    }
    return false;
  }

  /// y = x weightᵀ + bias + \p addend, which is optional, and what the adapter adds.
  void project(DeviceTensor const& y,
               DeviceTensor const& x,
               Parameter p,
               DeviceTensor const& addend) const {
    auto const bias = BlockParameters::bias_of(p);
    if (places_.has(bias)) {
      ops_.add_bias(y, weight(bias), addend);
    }
    ops_.linear(y, x, weight(p), places_.has(bias) ? y : addend);
    if (places_.adapts(p)) {
      adapter(p).add_to(y, x);
    }
  }

  /// y = \p residual + dropout(projection of x). \p projected is used with dropout only.
  void project_onto(DeviceTensor const& y,
                    DeviceTensor const& x,
                    Parameter p,
                    DeviceTensor const& residual,
                    DeviceTensor const& projected) const {
    if (drops()) {
      project(projected, x, p, absent);
      ops_.dropout(y, projected, residual, dropout(p));
    } else {
      project(y, x, p, residual);
    }
  }

  /// The gradient of a projection's output: \p dy, or \p memory, which receives the dropout's
  /// gradient.
  [[nodiscard]] DeviceTensor const& behind_dropout(DeviceTensor const& memory,
                                                   DeviceTensor const& dy,
                                                   Parameter p) const {
    if (!drops()) {
      return dy;
    }
    ops_.dropout(memory, dy, absent, dropout(p));
    return memory;
  }

  /// Adds the gradients of the weight, the bias and the adapter.
  void add_gradients(Parameter p, DeviceTensor const& dy, DeviceTensor const& x) const {
    ops_.linear_weight_gradient(sum(p), dy, x);
    if (auto const bias = BlockParameters::bias_of(p); places_.has(bias)) {
      ops_.bias_gradient(sum(bias), dy);
    }
    if (places_.adapts(p)) {
      adapter(p).add_gradients(
          sum(BlockParameters::lora_a_of(p)), sum(BlockParameters::lora_b_of(p)), dy, x);
    }
  }

  /// dx = the gradient of the input + \p addend, which is optional and may be dx.
  void input_gradient(DeviceTensor const& dx,
                      DeviceTensor const& dy,
                      Parameter p,
                      DeviceTensor const& addend) const {
    ops_.linear_input_gradient(dx, dy, weight(p), addend);
    if (places_.adapts(p)) {
      adapter(p).input_gradient(dx, dy, dx);
    }
  }

 private:
  [[nodiscard]] bool drops() const { return config_.dropout > 0 && !ctx_.evaluating(); }
  /// Each projection onto the residual stream has its own random numbers.
  [[nodiscard]] DropoutOptions dropout(Parameter p) const {
    return {config_.dropout, ctx_.random().with_stream(static_cast<std::uint32_t>(p))};
  }
  /// The adapter of \p p, which has one, and its own random numbers.
  [[nodiscard]] LowRankAdapter<O> adapter(Parameter p) const {
    auto const a = BlockParameters::lora_a_of(p);
    return {ops_,
            memory_,
            weight(a),
            weight(BlockParameters::lora_b_of(p)),
            config_.lora.scale(),
            {ctx_.evaluating() ? 0 : config_.lora.dropout,
             ctx_.random().with_stream(static_cast<std::uint32_t>(a))}};
  }

  TransformerConfig const& config_;
  BlockParameters const& places_;
  Context const& ctx_;
  O const& ops_;
  AdapterMemory const& memory_;
};

/// The work of a block whose table is \p table. It counts the products and the visible part of
/// attention: two products of the size of the scores in the forward, five in the backward (Dao et
/// al. 2022, appendix B).
[[nodiscard]] inline FlopCount block_work(TransformerConfig const& c,
                                          BlockParameters const& places,
                                          ParameterTable const& table,
                                          BatchShape shape) {
  using P = BlockParameters;
  auto const number = [](std::int64_t n) { return static_cast<double>(n); };
  double forward = 0;
  double backward = 0;
  auto const add = [&](P::Parameter p) {  // returns what the forward of the projection takes
    auto const [out, in] = P::extents_of(c, p);
    auto const product = 2 * number(shape.positions()) * number(out) * number(in);
    auto const adapter = places.adapts(p) ? adapter_work(c.lora, shape, out, in) : 0;
    forward += product + adapter;
    backward += (table[places[p]].frozen ? 1 : 2) * product + 3 * adapter;
    return product + adapter;
  };
  auto const queries = add(P::q_proj) + add(P::k_proj) + add(P::v_proj);
  auto const projected = add(P::o_proj);
  auto const wide = add(P::gate_proj) + add(P::up_proj);
  add(P::down_proj);
  auto const window =
      c.sliding_window == 0 ? shape.length : std::min(shape.length, c.sliding_window);
  auto const visible = number(shape.rows) * (number(window) * number(window + 1) / 2 +
                                             number(shape.length - window) * number(window));
  auto const scores = 2 * visible * number(c.query_width());
  return {forward + 2 * scores,
          backward + 5 * scores,
          {queries + projected + wide + 2 * scores,
           queries + projected + wide,
           projected + wide,
           projected}};
}

}  // namespace roundpipe::nn::detail
