// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Measures what every layer costs on a device, before the first step.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/plan/cost_model.hpp>
#include <roundpipe/plan/model_description.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// The tensors of one layer in a device block of its own.
template <class Stream>
class LayerBench {
 public:
  explicit LayerBench(LayerFacts const& facts) : facts_(facts) { place(TensorCarver{}); }

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  void use(DeviceBytes block) { place(TensorCarver{block}); }
  [[nodiscard]] LayerTensors const& tensors() const noexcept { return tensors_; }

  /// Calls \p f with every tensor that a layer only reads and whose elements are real numbers.
  template <class F>
  void for_each_operand(F&& f) const {
    for (auto const* list : {&tensors_.parameters,
                             &tensors_.inputs,
                             &tensors_.side_inputs,
                             &tensors_.output_gradients}) {
      for (auto const& tensor : *list) {
        if (tensor.present() && is_floating(tensor.dtype())) {
          f(tensor);
        }
      }
    }
  }

 private:
  void place(TensorCarver carver) {
    tensors_ = {};
    auto const take = [&](std::vector<DeviceTensor>& list, TensorSpec const& spec, bool present) {
      list.push_back(present ? carver.take(spec.shape, spec.dtype) : DeviceTensor{});
    };
    for (auto const& spec : facts_.parameters) {
      take(tensors_.parameters, spec.tensor, true);
      auto wide = spec.tensor;
      wide.dtype = accumulation_type(wide.dtype);
      take(tensors_.parameter_gradients, wide, true);
    }
    for (auto const& spec : facts_.input) {
      take(tensors_.inputs, spec, true);
      take(tensors_.input_gradients, spec, is_floating(spec.dtype));
    }
    for (auto const& spec : facts_.boundary) {
      take(tensors_.outputs, spec, true);
      take(tensors_.output_gradients, spec, is_floating(spec.dtype));
    }
    for (auto const& spec : facts_.side_inputs) {
      take(tensors_.side_inputs, spec, true);
    }
    auto const bytes_of = [&](Bytes count) -> DeviceBytes {
      auto const tensor = carver.take({static_cast<std::int64_t>(count)}, DType::u8);
      return {tensor.device_pointer(), tensor.present() ? count : 0};
    };
    tensors_.saved = bytes_of(facts_.footprint.saved_bytes);
    tensors_.workspace = bytes_of(facts_.footprint.workspace_bytes);
    tensors_.loss = {reinterpret_cast<double*>(bytes_of(sizeof(double)).device_pointer()), 1};
    bytes_ = carver.used_bytes();
  }

  LayerFacts const& facts_;
  LayerTensors tensors_;
  Bytes bytes_ = 0;
};

/// Small random numbers in pinned memory, of one floating type after another: matrix units draw
/// less power on zeros, and so run faster than they ever will again.
template <Backend B>
class RandomOperands {
 public:
  explicit RandomOperands(B& backend) {
    for (auto const type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      slabs_.emplace(type, backend.allocate_host(count * size_of(type)));
      visit_floating(type, [&]<class T>(T) {
        auto* const numbers = reinterpret_cast<T*>(slabs_.at(type).bytes().data());
        for (std::size_t i = 0; i < count; ++i) {
          numbers[i] = T(0.1F * uniform(random_word({}, i)) - 0.05F);
        }
      });
    }
  }

  /// Enqueues copies to all of \p tensor.
  void fill(typename B::Stream& stream, DeviceTensor const& tensor) const {
    HostSpan<std::byte const> const source = slabs_.at(tensor.dtype()).bytes();
    DeviceBytes const to{tensor.device_pointer(), tensor.size_bytes()};
    for (Bytes at = 0; at < to.size(); at += source.size()) {
      auto const bytes = std::min(source.size(), to.size() - at);
      stream.copy(to.subspan(at, bytes), source.first(bytes));
    }
  }

 private:
  static constexpr std::size_t count = std::size_t{1} << 18;

  std::map<DType, decltype(std::declval<B&>().allocate_host(Bytes{}))> slabs_;
};

/// Whether two layers of \p model are known to be copies of each other.
template <class Model>
[[nodiscard]] bool are_equal(Model const& model, LayerId a, LayerId b) {
  if constexpr (requires { model.run_of(a) == model.run_of(b); }) {
    return model.run_of(a) == model.run_of(b);
  } else {
    return false;
  }
}

}  // namespace detail

/// Runs forward and backward of every layer of \p model \p repetitions times on device 0, on small
/// random numbers (integers are 0), after one run that does not count, and takes the median times.
/// Of equal layers the first is run. Memory for the largest layer is taken and given back.
/// \throws Error as the layers and the backend do.
template <class Model, Backend B>
[[nodiscard]] CostModel measure_costs(Model const& model,
                                      B& backend,
                                      ModelDescription const& description,
                                      std::size_t repetitions = 3) {
  using Stream = typename B::Stream;
  DeviceId const device(0);
  auto stream = backend.make_stream(device, LaneKind::compute);
  auto start = backend.make_event(device);
  auto end = backend.make_event(device);
  auto const timed = [&](auto&& enqueue) {
    stream.record(start);
    enqueue();
    stream.record(end);
    end.wait();
    return end.seconds_since(start);
  };
  detail::RandomOperands<B> const operands(backend);
  std::vector<LayerCost> costs;
  for (std::size_t i = 0; i < description.size(); ++i) {
    if (i > 0 && detail::are_equal(model, LayerId(i - 1), LayerId(i))) {
      costs.push_back(costs.back());
      continue;
    }
    detail::LayerBench<Stream> bench(description.layers[i]);
    auto const memory = backend.allocate_device(device, bench.bytes());
    bench.use(memory.bytes());
    stream.fill(memory.bytes(), std::byte{0});
    bench.for_each_operand([&](DeviceTensor const& tensor) { operands.fill(stream, tensor); });
    LayerCall call;
    call.shape = description.capacity;
    call.random.layer = static_cast<std::uint32_t>(i);
    call.saving = true;
    ForwardContext<Stream> forward(stream, call, bench.tensors());
    BackwardContext<Stream> backward(stream, call, bench.tensors());
    std::vector<double> forward_s;
    std::vector<double> backward_s;
    model.visit(LayerId(i), [&]<Layer<Stream> L>(L const& layer) {
      for (std::size_t r = 0; r <= std::max<std::size_t>(repetitions, 1); ++r) {
        forward_s.push_back(timed([&] { layer.forward(forward); }));
        backward_s.push_back(timed([&] { layer.backward(backward); }));
      }
    });
    auto const median = [](std::vector<double>& times) {
      auto const middle = times.begin() + 1 + static_cast<std::ptrdiff_t>(times.size() - 1) / 2;
      std::nth_element(times.begin() + 1, middle, times.end());
      return *middle;
    };
    costs.push_back({median(forward_s), median(backward_s)});
  }
  return CostModel(std::move(costs));
}

}  // namespace roundpipe
