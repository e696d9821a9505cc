// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs one layer on the host in memory of exactly the declared size, checks that it leaves
/// other memory alone, and compares its gradients with finite differences.

#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/tensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// Aligned memory between two guards.
class GuardedMemory {
 public:
  explicit GuardedMemory(Bytes bytes) : bytes_(bytes), storage_(align_up(bytes) / unit + 2) {
    fill(storage_.data(), storage_.size() * unit, std::byte{0xA5});
    poison();
  }
  [[nodiscard]] DeviceBytes device() { return {data(), bytes_}; }
  /// Sets every floating-point number to NaN, every integer to -1.
  void poison() { fill(data(), bytes_, std::byte{0xFF}); }
  void zero() { fill(data(), bytes_, std::byte{0}); }
  [[nodiscard]] std::vector<std::byte> content() const {
    auto const* const first = reinterpret_cast<std::byte const*>(storage_.data()) + unit;
    return {first, first + bytes_};
  }
  [[nodiscard]] bool guards_intact() const {
    auto const* const first = reinterpret_cast<std::byte const*>(storage_.data());
    auto const* const last = first + storage_.size() * unit;
    auto const intact = [](std::byte b) { return b == std::byte{0xA5}; };
    return std::all_of(first, first + unit, intact) &&
           std::all_of(first + unit + bytes_, last, intact);
  }

 private:
  static constexpr Bytes unit = tensor_alignment_bytes;
  struct alignas(unit) Unit {
    std::byte bytes[unit];
  };

  std::byte* data() { return reinterpret_cast<std::byte*>(storage_.data()) + unit; }
  static void fill(void* to, Bytes bytes, std::byte value) {
    if (bytes > 0) {
      std::memset(to, std::to_integer<int>(value), bytes);
    }
  }

  Bytes bytes_;
  std::vector<Unit> storage_;
};

/// The elements of \p t; empty if it is absent.
inline std::vector<double> read(DeviceTensor const& t) {
  if (!t.present()) {
    return {};
  }
  std::vector<double> result(t.size());
  visit_floating(t.dtype(), [&](auto element) {
    auto const* const from = t.as<decltype(element)>().device_pointer();
    for (std::size_t i = 0; i < t.size(); ++i) {
      result[i] = static_cast<double>(from[i]);
    }
  });
  return result;
}

inline void write_one(DeviceTensor const& t, std::size_t i, double value) {
  visit_floating(t.dtype(), [&](auto element) {
    using T = decltype(element);
    if constexpr (sizeof(T) == 2) {
      t.as<T>()[i] = T(static_cast<float>(value));
    } else {
      t.as<T>()[i] = static_cast<T>(value);
    }
  });
}

inline void write(DeviceTensor const& t, std::vector<double> const& values) {
  for (std::size_t i = 0; i < t.size(); ++i) {
    write_one(t, i, values.at(i));
  }
}

inline void write(DeviceTensor const& t, std::vector<std::int32_t> const& values) {
  for (std::size_t i = 0; i < t.size(); ++i) {
    t.as<std::int32_t>()[i] = values.at(i);
  }
}

/// Normal numbers that depend on \p name alone.
inline void write_random(DeviceTensor const& t, std::uint32_t name, double deviation, double mean) {
  for (std::size_t i = 0; i < t.size(); ++i) {
    write_one(t, i, mean + deviation * static_cast<double>(normal({77, name, 0, 0, 0}, i)));
  }
}

/// ||a - b|| / ||b||, or ||a|| where b is 0.
inline double relative_difference(std::vector<double> const& a, std::vector<double> const& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  return norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

/// A stream that runs its work only on request.
class DeferredStream {
 public:
  template <class F>
  void launch(F f) {
    work_.push_back(std::move(f));
  }
  void run() {
    for (auto const& f : work_) {
      f();
    }
    work_.clear();
  }

 private:
  std::vector<std::function<void()>> work_;
};

/// The stream that a layer names, or otherwise the host's.
template <class L>
struct StreamOfLayer {
  using type = HostStream;
};
template <class L>
  requires requires { typename L::Stream; }
struct StreamOfLayer<L> {
  using type = typename L::Stream;
};

/// One layer with its memory for one micro-batch. Frozen parameters have no gradient.
template <class L>
class LayerRunner {
 public:
  using Stream = typename StreamOfLayer<L>::type;

  LayerRunner(L const& l, BatchShape shape) : LayerRunner(l, shape, shape) {}
  /// Allocates for \p capacity. Parameters, inputs and output gradients are random; integer inputs
  /// are not written.
  LayerRunner(L const& l, BatchShape shape, BatchShape capacity)
      : layer(l),
        parameters(table_of(false).bytes()),
        parameter_gradients(table_of(true).bytes()),
        inputs(l.input(capacity).bytes()),
        input_gradients(l.input(capacity).bytes()),
        side_inputs(side_table(capacity).bytes()),
        outputs(l.boundary(capacity).bytes()),
        output_gradients(l.boundary(capacity).bytes()),
        results(result_table(capacity).bytes()),
        saved(l.footprint(capacity).saved_bytes),
        workspace(l.footprint(capacity).workspace_bytes) {
    call.shape = shape;
    call.random = {5, 3, 2, 1, 0};
    tensors.parameters = views(table_of(false), parameters.device());
    tensors.parameter_gradients = views(table_of(true), parameter_gradients.device());
    tensors.inputs = views(l.input(shape), inputs.device());
    tensors.input_gradients = views(l.input(shape), input_gradients.device());
    tensors.side_inputs = views(side_table(shape), side_inputs.device());
    tensors.outputs = views(l.boundary(shape), outputs.device());
    tensors.output_gradients = views(l.boundary(shape), output_gradients.device());
    std::uint32_t name = 0;
    auto const specs = l.parameters();
    for (std::size_t i = 0; i < specs.size(); ++i) {
      auto const mean = specs[i].initial.kind == Initial::Kind::ones ? 1.0 : 0.0;
      write_random(tensors.parameters[i], ++name, 0.3, mean);
      if (specs[i].frozen) {
        tensors.parameter_gradients[i] = DeviceTensor{};
        continue;
      }
      write(tensors.parameter_gradients[i], std::vector<double>(specs[i].tensor.shape.size()));
    }
    for (auto const& t : tensors.inputs) {
      ++name;
      if (is_floating(t.dtype())) {
        write_random(t, name, 1.0, 0.0);
      }
    }
    for (auto const& t : tensors.output_gradients) {
      ++name;
      if (is_floating(t.dtype())) {
        write_random(t, name, 1.0, 0.0);
      }
    }
    for (auto* const gradients : {&tensors.input_gradients, &tensors.output_gradients}) {
      for (auto& t : *gradients) {
        t = is_floating(t.dtype()) ? t : DeviceTensor{};
      }
    }
  }

  /// Runs the forward. \returns the loss; 0 for a layer without one, and if a saving forward leaves
  /// the loss to the backward.
  double forward(bool saving, bool wants_results = false) {
    auto const constant = watched(false);
    outputs.poison();
    saved.poison();
    workspace.poison();
    loss = 0;
    call.saving = saving;
    tensors.saved = saving ? saved.device() : DeviceBytes{};
    tensors.workspace = workspace.device();
    tensors.loss = {&loss, 1};
    tensors.results.clear();
    if (wants_results) {
      tensors.results = views(result_table(call.shape), results.device());
    }
    finish([&] {
      ForwardContext<Stream> ctx(stream, call, tensors);
      layer.forward(ctx);
    });
    CHECK(watched(false) == constant);
    check_guards();
    return loss;
  }

  /// Runs a recomputation whose output nobody reads, and that finds save level \p level of \p
  /// content, which an earlier saving forward has left. Of the rest of it nothing is there.
  void replay(std::size_t level, std::vector<std::byte> const& content) {
    saved.poison();
    outputs.poison();
    workspace.poison();
    auto const kept = level > 0 ? layer.save_levels(call.shape)[level - 1] : 0;
    std::copy_n(content.begin(), kept, saved.device().device_pointer());
    auto const before = outputs.content();
    call.saving = true;
    call.wants_output = false;
    call.found_level = level;
    tensors.saved = saved.device();
    tensors.workspace = workspace.device();
    finish([&] {
      ForwardContext<Stream> ctx(stream, call, tensors);
      layer.forward(ctx);
    });
    CHECK(outputs.content() == before);
    check_guards();
    call.wants_output = true;
    call.found_level = 0;
  }

  /// Runs the backward after a saving forward; \returns the loss, 0 for a layer without one.
  double backward() {
    auto const constant = watched(true);
    outputs.poison();
    input_gradients.poison();
    workspace.poison();
    finish([&] {
      BackwardContext<Stream> ctx(stream, call, tensors);
      layer.backward(ctx);
    });
    CHECK(watched(true) == constant);
    check_guards();
    return loss;
  }

  /// The weighted sum of the outputs, by the output gradients, plus the loss.
  double objective() {
    // A saving forward may leave the loss to the backward.
    auto sum = forward(!LossLayer<L>);
    for (std::size_t i = 0; i < tensors.outputs.size(); ++i) {
      if (!tensors.output_gradients[i].present()) {
        continue;
      }
      auto const y = read(tensors.outputs[i]);
      auto const weight = read(tensors.output_gradients[i]);
      for (std::size_t j = 0; j < y.size(); ++j) {
        sum += y[j] * weight[j];
      }
    }
    return sum;
  }

  L layer;
  Stream stream;
  LayerCall call;
  LayerTensors tensors;
  double loss = 0;
  GuardedMemory parameters;
  GuardedMemory parameter_gradients;
  GuardedMemory inputs;
  GuardedMemory input_gradients;
  GuardedMemory side_inputs;
  GuardedMemory outputs;
  GuardedMemory output_gradients;
  GuardedMemory results;
  GuardedMemory saved;
  GuardedMemory workspace;

 private:
  [[nodiscard]] TensorTable table_of(bool accumulation) const {
    TensorTable table;
    for (auto spec : layer.parameters()) {
      if (accumulation) {
        spec.tensor.dtype = accumulation_type(spec.tensor.dtype);
      }
      table.add(spec.tensor);
    }
    return table;
  }
  [[nodiscard]] TensorTable side_table(BatchShape shape) const {
    if constexpr (HasSideInputs<L>) {
      return layer.side_inputs(shape);
    }
    return {};
  }
  [[nodiscard]] TensorTable result_table(BatchShape shape) const {
    if constexpr (HasResults<L>) {
      return layer.results(shape);
    }
    return {};
  }
  /// Enqueues, then runs a deferred stream, which must not have written anything before.
  template <class F>
  void finish(F&& enqueue) {
    if constexpr (requires { stream.run(); }) {
      auto const before = written();
      enqueue();
      CHECK(written() == before);
      stream.run();
    } else {
      enqueue();
    }
  }
  [[nodiscard]] std::vector<std::vector<std::byte>> written() const {
    return {outputs.content(),
            input_gradients.content(),
            parameter_gradients.content(),
            saved.content(),
            workspace.content()};
  }
  /// The memory that a pass may only read.
  [[nodiscard]] std::vector<std::vector<std::byte>> watched(bool backward) const {
    std::vector<std::vector<std::byte>> list{
        parameters.content(), inputs.content(), side_inputs.content(), output_gradients.content()};
    list.push_back(backward ? saved.content() : parameter_gradients.content());
    return list;
  }
  void check_guards() const {
    for (auto const* memory : {&parameters,
                               &parameter_gradients,
                               &inputs,
                               &input_gradients,
                               &side_inputs,
                               &outputs,
                               &output_gradients,
                               &results,
                               &saved,
                               &workspace}) {
      CHECK(memory->guards_intact());
    }
  }
};

/// The central difference quotients of the runner's objective by every element of \p t.
template <class L>
std::vector<double> difference_quotients(LayerRunner<L>& runner, DeviceTensor const& t) {
  constexpr double step = 1e-5;
  auto const values = read(t);
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    write_one(t, i, values[i] + step);
    auto const above = runner.objective();
    write_one(t, i, values[i] - step);
    auto const below = runner.objective();
    write_one(t, i, values[i]);
    result[i] = (above - below) / (2 * step);
  }
  return result;
}

/// Checks every gradient of an f64 layer against difference quotients, tensor by tensor, and that
/// the layer adds parameter gradients to the values before.
template <class L>
void check_gradients(LayerRunner<L>& runner, double tolerance = 1e-6) {
  static_cast<void>(runner.objective());
  std::vector<std::vector<double>> before;
  for (std::size_t i = 0; i < runner.tensors.parameter_gradients.size(); ++i) {
    auto const& t = runner.tensors.parameter_gradients[i];
    if (t.present()) {
      write_random(t, static_cast<std::uint32_t>(1000 + i), 1.0, 0.0);
    }
    before.push_back(read(t));
  }
  runner.backward();
  auto const check =
      [&](std::string const& name, std::vector<double> const& gradient, DeviceTensor const& t) {
        auto const quotients = difference_quotients(runner, t);
        double norm = 0;
        for (auto const q : quotients) {
          norm += q * q;
        }
        auto const difference = relative_difference(gradient, quotients);
        INFO("gradient of " << name << " with norm " << std::sqrt(norm));
        CHECK(std::sqrt(norm) > 1e-3);  // otherwise the comparison would mean little
        CHECK(difference <= tolerance);
      };
  auto const specs = runner.layer.parameters();
  std::vector<std::vector<double>> gradients;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    auto gradient = read(runner.tensors.parameter_gradients[i]);
    for (std::size_t j = 0; j < gradient.size(); ++j) {
      gradient[j] -= before[i][j];
    }
    gradients.push_back(std::move(gradient));
  }
  std::vector<std::vector<double>> input_gradients;
  for (auto const& t : runner.tensors.input_gradients) {
    input_gradients.push_back(read(t));
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].frozen) {
      CHECK(gradients[i].empty());
    } else {
      check(specs[i].tensor.name, gradients[i], runner.tensors.parameters[i]);
    }
  }
  for (std::size_t i = 0; i < input_gradients.size(); ++i) {
    check("input " + std::to_string(i), input_gradients[i], runner.tensors.inputs[i]);
  }
}

/// Fills the inputs that a runner has not written: side inputs with small numbers, which are valid
/// tokens, and integer inputs with ones.
template <class L>
void fill_unwritten(LayerRunner<L>& runner) {
  std::uint32_t name = 500;
  for (DeviceTensor const& t : runner.tensors.side_inputs) {
    ++name;
    if (is_floating(t.dtype())) {
      write_random(t, name, 1.0, 0.0);
      continue;
    }
    for (std::size_t i = 0; i < t.size(); ++i) {
      auto const value = static_cast<std::uint8_t>(i % 3);
      if (t.dtype() == DType::i32) {
        t.as<std::int32_t>()[i] = value;
      } else {
        t.as<std::uint8_t>()[i] = value;
      }
    }
  }
  for (DeviceTensor const& t : runner.tensors.inputs) {
    if (!is_floating(t.dtype())) {
      write(t, std::vector<std::int32_t>(t.size(), 1));
    }
  }
}

}  // namespace roundpipe::test
