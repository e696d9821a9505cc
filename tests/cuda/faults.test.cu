// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/model/sequential.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace roundpipe;
using test::error_of;
using test::OneLayerStages;

constexpr int columns = 32;
constexpr std::int64_t rows = 16;
constexpr std::size_t micro_batches = 2;
constexpr std::size_t steps = 5;

__global__ void shift(float* y, float const* x, float const* w) {  // one block for each row
  auto const i = blockIdx.x * columns + threadIdx.x;
  y[i] = x[i] + w[threadIdx.x];
}

__global__ void shift_back(float* dx, float* dw, float const* dy, int size) {  // one block
  for (auto i = static_cast<int>(threadIdx.x); i < size; i += columns) {
    dw[threadIdx.x] += dy[i];
    if (dx != nullptr) {
      dx[i] = dy[i];
    }
  }
}

/// One thread computes the loss, and its gradient unless \p dx is null.
__global__ void half_square(double* loss, float* dx, float const* x, double scale, int size) {
  double sum = 0;
  for (int i = 0; i < size; ++i) {
    sum += scale / 2 * x[i] * x[i];
    if (dx != nullptr) {
      dx[i] = static_cast<float>(scale * x[i]);
    }
  }
  if (loss != nullptr) {
    *loss = sum;
  }
}

float* data(DeviceTensor const& tensor) {
  return tensor.as<float>().device_pointer();
}

template <class Context>
int size_of(Context const& ctx) {
  return static_cast<int>(ctx.shape().rows) * columns;
}

/// The number of backward passes of a first layer until one throws; 0: none throws.
std::atomic<int> passes_left = 0;

/// y = x + w.
struct Shift {
  bool first = false;
  ParameterTable parameters() const { return {{{"w", {columns}}, Initial::normal(0.5F)}}; }
  TensorTable boundary(BatchShape s) const { return {{"x", {s.rows, columns}}}; }
  TensorTable input(BatchShape s) const { return first ? TensorTable{} : boundary(s); }
  TensorTable side_inputs(BatchShape s) const { return first ? boundary(s) : TensorTable{}; }
  Footprint footprint(BatchShape) const { return {}; }
  template <class Context>
  void forward(Context& ctx) const {
    shift<<<size_of(ctx) / columns, columns, 0, ctx.stream().get()>>>(
        data(ctx.output(0)),
        data(first ? ctx.side_input(0) : ctx.input(0)),
        data(ctx.parameter(0)));
    cu::check(cudaGetLastError(), "shift");
  }
  template <class Context>
  void backward(Context& ctx) const {
    if (first && passes_left > 0 && --passes_left == 0) {
      throw std::runtime_error("injected");
    }
    auto* const dx = first ? nullptr : data(ctx.input_gradient(0));
    shift_back<<<1, columns, 0, ctx.stream().get()>>>(
        dx, data(ctx.parameter_gradient(0)), data(ctx.output_gradient(0)), size_of(ctx));
    cu::check(cudaGetLastError(), "shift_back");
  }
};

struct HalfSquare {
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape s) const { return {{"x", {s.rows, columns}}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  std::int64_t loss_terms(std::span<HostTensor const>, BatchShape s) const {
    return s.rows * columns;
  }
  template <class Context>
  void forward(Context& ctx) const {
    launch(ctx, ctx.loss().device_pointer(), nullptr);
  }
  template <class Context>
  void backward(Context& ctx) const {
    launch(ctx, nullptr, data(ctx.input_gradient(0)));
  }
  template <class Context>
  void launch(Context& ctx, double* loss, float* dx) const {
    half_square<<<1, 1, 0, ctx.stream().get()>>>(
        loss, dx, data(ctx.input(0)), ctx.gradient_scale(), size_of(ctx));
    cu::check(cudaGetLastError(), "half_square");
  }
};

/// So slow that the gradients of the next call wait for it; but not where step() asks.
class SlowSgd {
 public:
  [[nodiscard]] std::size_t state_arrays() const { return rule_.state_arrays(); }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(weights.size() > 1 ? 10 : 0));
    rule_.update(context, weights, gradients, states);
  }

 private:
  Sgd rule_{{.rate = LearningRate::constant(3)}};
};

auto model() {
  return Sequential{Shift{true}, Shift{}, Shift{}, Shift{}, Shift{}, Shift{}, HalfSquare{}};
}

cu::CudaBackendOptions first_devices(std::size_t devices) {
  cu::CudaBackendOptions on;
  for (std::size_t d = 0; d < devices; ++d) {
    on.devices.emplace_back(d);
  }
  on.device_memory_bytes = 16_MiB;
  return on;
}

PipelineOptions options_of(StepStart start) {
  return {.capacity = {rows},
          .micro_batches_per_round = micro_batches,
          .seed = 7,
          .step_start = start,
          .optimizer_threads = 1};
}

/// A call's values; each \p number has its own.
std::vector<float> values(std::size_t number) {
  std::vector<float> x(micro_batches * rows * columns);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(0.37F * static_cast<float>(i) + static_cast<float>(number));
  }
  return x;
}

/// The result of a training: weights as digests, and the codes of errors.
struct End {
  std::vector<std::uint64_t> digests;
  std::error_code training;
  std::error_code reading;
  std::size_t finished_steps = 0;
};

/// Trains. With \p reads, digests cover the first weights and the weights after each step,
/// otherwise only the last weights.
End train(std::size_t devices, StepStart start, bool reads) {
  cu::CudaBackend backend(first_devices(devices));
  Pipeline pipeline{model(),
                    SlowSgd{},
                    backend,
                    options_of(start),
                    Policies{.protocol = LayerEventProtocol{1}, .partitioner = OneLayerStages{}}};
  auto const x = values(0);
  End end;
  if (reads) {
    end.digests.push_back(weights_digest(pipeline));
  }
  auto const error = error_of([&] {
    for (std::size_t step = 0; step < steps; ++step) {
      pipeline.forward_backward(Batch(micro_batches, {rows}).set("x", x));
      pipeline.step();
      if (reads) {
        end.digests.push_back(weights_digest(pipeline));
      }
    }
    pipeline.synchronize();
  });
  end.training = error.code();
  if (!reads) {
    end.reading = error_of([&] { end.digests.push_back(weights_digest(pipeline)); }).code();
  }
  end.finished_steps = pipeline.report().steps;
  return end;
}

/// What goes wrong in a call.
enum class Bad { nothing, loss, layer, caller };

/// Trains seven steps, and before the third one meets a bad call. \returns the weights after each.
std::vector<std::uint64_t> train_through(std::size_t devices, int staleness, Bad bad) {
  constexpr std::uint64_t bad_step = 2;
  passes_left = 0;
  cu::CudaBackend backend(first_devices(devices));
  Pipeline pipeline{
      model(),
      SlowSgd{},
      backend,
      options_of(StepStart::all_blocks),
      Policies{.protocol = LayerEventProtocol{staleness}, .partitioner = OneLayerStages{}}};
  std::vector<std::uint64_t> digests;
  for (std::uint64_t step = 0; step < bad_step + 5; ++step) {
    if (bad != Bad::nothing && step == bad_step) {
      (void)pipeline.timeline();  // waits for the backward of the call before
      auto x = values(100);
      if (bad == Bad::loss) {
        x[5] = std::numeric_limits<float>::quiet_NaN();
      }
      passes_left = bad == Bad::layer ? 1 : 0;
      auto const error = error_of([&] {
        pipeline.forward_backward(Batch(micro_batches, {rows}).set("x", x));
        (void)pipeline.timeline();
        throw Error(Errc::unsupported, "of the caller's own");
      });
      CHECK(error.code() == (bad == Bad::loss    ? Errc::not_finite
                             : bad == Bad::layer ? Errc::device_fault
                                                 : Errc::unsupported));
      REQUIRE(pipeline.recover() == bad_step);
      passes_left = 0;
    }
    auto const x = values(step);
    pipeline.forward_backward(Batch(micro_batches, {rows}).set("x", x));
    pipeline.step();
    digests.push_back(weights_digest(pipeline));
  }
  return digests;
}

}  // namespace

TEST_CASE("after a bad call and recover(), a training has the bits of one that never saw it") {
  std::size_t const devices = std::min<std::size_t>(cu::device_count(), 2);
  for (std::size_t used = 1; used <= devices; ++used) {
    for (int const staleness : {0, 1}) {
      auto const clean = train_through(used, staleness, Bad::nothing);
      CHECK(clean.front() != clean.back());
      for (auto const bad : {Bad::loss, Bad::layer, Bad::caller}) {
        CAPTURE(used);
        CAPTURE(staleness);
        CAPTURE(static_cast<int>(bad));
        CHECK(train_through(used, staleness, bad) == clean);
      }
    }
  }
}

TEST_CASE("copies that wait for the optimizer do not disturb the step that it finishes") {
  std::size_t const devices = std::min<std::size_t>(cu::device_count(), 4);
  for (auto const start : {StepStart::all_blocks, StepStart::each_block}) {
    for (std::size_t used = 1; used <= devices; ++used) {
      passes_left = 0;
      auto const clean = train(used, start, true);
      REQUIRE(clean.training == std::error_code{});
      REQUIRE(clean.digests.size() == steps + 1);
      std::size_t read = 0;
      for (std::size_t call = 1; call < steps; ++call) {
        CAPTURE(call);
        // The constructor runs the layer once on every device.
        passes_left = static_cast<int>(used + call * micro_batches + 1);
        auto const end = train(used, start, false);
        CHECK(end.training == Errc::device_fault);
        if (end.reading == std::error_code{}) {
          ++read;
          CHECK(end.digests.front() == clean.digests[end.finished_steps]);
        } else {
          CHECK(end.reading == Errc::aborted);
          CHECK(start == StepStart::each_block);
        }
      }
      CHECK((read > 0 || start == StepStart::each_block));
    }
  }
}
