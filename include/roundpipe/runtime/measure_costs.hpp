// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Measures what every layer costs on a device, before the first step.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/plan/cost_model.hpp>
#include <roundpipe/plan/model_description.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// The tensors of one layer in a device block of its own, all bytes zero.
template <class Stream>
class LayerBench {
 public:
  explicit LayerBench(LayerFacts const& facts) : facts_(facts) { place(TensorCarver{}); }

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  void use(DeviceBytes block) { place(TensorCarver{block}); }
  [[nodiscard]] LayerTensors const& tensors() const noexcept { return tensors_; }

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

}  // namespace detail

/// Runs forward and backward of every layer of \p model \p repetitions times on device 0, on zeros,
/// and takes the shortest times. Device memory for the largest layer is taken and given back.
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
  std::vector<LayerCost> costs;
  for (std::size_t i = 0; i < description.size(); ++i) {
    detail::LayerBench<Stream> bench(description.layers[i]);
    auto const memory = backend.allocate_device(device, bench.bytes());
    bench.use(memory.bytes());
    stream.fill(memory.bytes(), std::byte{0});
    LayerCall call;
    call.shape = description.capacity;
    call.random.layer = static_cast<std::uint32_t>(i);
    call.saving = true;
    ForwardContext<Stream> forward(stream, call, bench.tensors());
    BackwardContext<Stream> backward(stream, call, bench.tensors());
    LayerCost best;
    for (std::size_t r = 0; r < std::max<std::size_t>(repetitions, 1); ++r) {
      model.visit(LayerId(i), [&]<Layer<Stream> L>(L const& layer) {
        auto const forward_s = timed([&] { layer.forward(forward); });
        auto const backward_s = timed([&] { layer.backward(backward); });
        best.forward_s = r == 0 ? forward_s : std::min(best.forward_s, forward_s);
        best.backward_s = r == 0 ? backward_s : std::min(best.backward_s, backward_s);
      });
    }
    costs.push_back(best);
  }
  return CostModel(std::move(costs));
}

}  // namespace roundpipe
