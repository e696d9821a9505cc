// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The low-rank adapter of one linear map: its parameters, its memory and its products.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/carve.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <cmath>
#include <cstdint>
#include <string>

namespace roundpipe::nn::detail {

/// The matrices A and B of the adapter of the map \p name, whose weight is [out, in]. Both decay.
[[nodiscard]] inline ParameterTable adapter_parameters(TransformerConfig const& c,
                                                       std::string const& name,
                                                       std::int64_t out,
                                                       std::int64_t in) {
  auto const deviation = static_cast<float>(1 / std::sqrt(3 * static_cast<double>(in)));
  return {{{name + ".lora_A.weight", {c.lora.rank, in}, c.parameter}, Initial::normal(deviation)},
          {{name + ".lora_B.weight", {out, c.lora.rank}, c.parameter}}};
}

/// The floating-point operations of the forward of an adapter beside a weight [out, in]. The
/// backward takes three times as many: it computes A x, and twice the gradient of that.
[[nodiscard]] inline double adapter_work(LoraConfig const& lora,
                                         BatchShape shape,
                                         std::int64_t out,
                                         std::int64_t in) {
  return 2 * static_cast<double>(shape.positions()) * static_cast<double>(lora.rank) *
         (static_cast<double>(out) + static_cast<double>(in));
}

/// What adapters need while they run, one after another. Nothing of it is saved.
struct AdapterMemory {
  AdapterMemory() = default;
  /// \param width of the widest input of a map with an adapter; 0: there is none.
  AdapterMemory(TensorCarver& work,
                TransformerConfig const& c,
                std::int64_t positions,
                std::int64_t width) {
    if (width > 0) {
      low = work.take({positions, c.lora.rank}, c.storage);
      if (c.lora.dropout > 0) {
        dropped = work.take({positions, width}, c.storage);
      }
    }
  }

  DeviceTensor low;      ///< A x, or its gradient.
  DeviceTensor dropped;  ///< x after the dropout, or its gradient.
};

/// The adapter of one map in one call, which adds to what the map itself computes.
template <Ops O>
class LowRankAdapter {
 public:
  /// \param dropout of x; a rate of 0 for none.
  LowRankAdapter(O const& ops,
                 AdapterMemory const& memory,
                 DeviceTensor const& a,
                 DeviceTensor const& b,
                 double scale,
                 DropoutOptions const& dropout)
      : ops_(ops), low_(memory.low), a_(a), b_(b), scale_(scale), dropout_(dropout) {
    if (dropout.rate > 0) {
      auto const rows = low_.shape()[0];
      dropped_ = row_range(memory.dropped, a.shape()[1], 0, rows);
    }
  }

  /// y += scale B A dropout(x).
  void add_to(DeviceTensor const& y, DeviceTensor const& x) const {
    ops_.linear(low_, seen(x), a_, absent, scale_);
    ops_.linear(y, low_, b_, y);
  }

  /// Adds the gradients of A and B, each of which may be absent.
  void add_gradients(DeviceTensor const& da,
                     DeviceTensor const& db,
                     DeviceTensor const& dy,
                     DeviceTensor const& x) const {
    if (!da.present() && !db.present()) {
      return;
    }
    auto const& input = seen(x);
    if (db.present()) {
      ops_.linear(low_, input, a_, absent, scale_);
      ops_.linear_weight_gradient(db, dy, low_);
    }
    if (da.present()) {
      ops_.linear_input_gradient(low_, dy, b_, absent, scale_);
      ops_.linear_weight_gradient(da, low_, input);
    }
  }

  /// dx = the gradient of x, by way of the adapter alone, + \p addend, which is optional and may be
  /// dx.
  void input_gradient(DeviceTensor const& dx,
                      DeviceTensor const& dy,
                      DeviceTensor const& addend) const {
    ops_.linear_input_gradient(low_, dy, b_, absent, scale_);
    if (dropout_.rate > 0) {
      ops_.linear_input_gradient(dropped_, low_, a_, absent);
      ops_.dropout(dx, dropped_, addend, dropout_);
    } else {
      ops_.linear_input_gradient(dx, low_, a_, addend);
    }
  }

 private:
  /// x as the adapter sees it.
  [[nodiscard]] DeviceTensor const& seen(DeviceTensor const& x) const {
    if (dropout_.rate == 0) {
      return x;
    }
    ops_.dropout(dropped_, x, absent, dropout_);
    return dropped_;
  }

  O ops_;
  DeviceTensor low_;
  DeviceTensor dropped_;
  DeviceTensor a_;
  DeviceTensor b_;
  double scale_;
  DropoutOptions dropout_;
};

}  // namespace roundpipe::nn::detail
