// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Layers with chosen compute time and parameter bytes.

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/model/sequential.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace roundpipe::bench {

/// The properties that all layers of a timed model share.
struct TimedOptions {
  Bytes parameter_bytes = 1_MiB;            ///< Of each layer.
  Bytes boundary_bytes = 64_KiB;            ///< Of a micro-batch.
  std::chrono::microseconds forward{1000};  ///< Of a micro-batch; a backward takes twice as long.
  bool trained = true;                      ///< Whether layers have gradients and are updated.
};

/// \tparam Busy Keeps a stream busy: `Busy::spend(stream, duration)` enqueues it.
template <class Busy>
struct TimedLayer {
  TimedOptions options;
  bool is_first = false;

  std::string name() const { return "timed layer"; }
  ParameterTable parameters() const {
    auto const elements = static_cast<std::int64_t>(options.parameter_bytes / sizeof(float));
    return {{{"weight", {elements}, DType::f32},
             Initial::zeros(),
             DecayGroup::exempt,
             {},
             !options.trained}};
  }
  TensorTable input(BatchShape shape) const { return is_first ? TensorTable{} : boundary(shape); }
  TensorTable boundary(BatchShape) const {
    auto const elements = static_cast<std::int64_t>(options.boundary_bytes / sizeof(float));
    return {{"hidden", {elements}, DType::f32}};
  }
  Footprint footprint(BatchShape) const { return {}; }
  FlopCount work(BatchShape) const {
    auto const seconds = std::chrono::duration<double>(options.forward).count();
    return {seconds, 2 * seconds};  // only their ratios count
  }
  template <class Stream>
  void forward(ForwardContext<Stream>& ctx) const {
    Busy::spend(ctx.stream(), options.forward);
  }
  template <class Stream>
  void backward(BackwardContext<Stream>& ctx) const {
    Busy::spend(ctx.stream(), 2 * options.forward);
  }
};

/// Ends a timed model; its loss is the number that \c Busy writes.
template <class Busy>
struct TimedLoss {
  TimedOptions options;

  std::string name() const { return "timed loss"; }
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const {
    return TimedLayer<Busy>{options, false}.boundary(shape);
  }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  FlopCount work(BatchShape shape) const { return TimedLayer<Busy>{options, false}.work(shape); }
  std::int64_t loss_terms(std::span<HostTensor const>, BatchShape) const { return 1; }
  template <class Stream>
  void forward(ForwardContext<Stream>& ctx) const {
    Busy::spend(ctx.stream(), options.forward);
    Busy::write(ctx.stream(), ctx.loss(), 1.0);
  }
  template <class Stream>
  void backward(BackwardContext<Stream>& ctx) const {
    Busy::spend(ctx.stream(), 2 * options.forward);
  }
};

/// \p layers timed layers and a loss.
template <class Busy>
auto timed_model(TimedOptions const& options, std::size_t layers) {
  return Sequential{TimedLayer<Busy>{options, true},
                    repeat(layers - 1, TimedLayer<Busy>{options, false}),
                    TimedLoss<Busy>{options}};
}

}  // namespace roundpipe::bench
