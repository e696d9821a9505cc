// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs every layer before the first step: to measure what it costs, and so that devices
/// have seen all of their work.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/plan/cost_model.hpp>
#include <roundpipe/plan/model_description.hpp>

#include <algorithm>
#include <array>
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

/// Small normal numbers in pinned memory, of one floating type after another: matrix units draw
/// less power on zeros, and on numbers whose exponents are much alike, and so run faster than they
/// ever will again.
template <Backend B>
class RandomOperands {
 public:
  explicit RandomOperands(B& backend) {
    for (auto const type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      slabs_.emplace(type, backend.allocate_host(count * size_of(type)));
      visit_floating(type, [&]<class T>(T) {
        auto* const numbers = reinterpret_cast<T*>(slabs_.at(type).bytes().data());
        for (std::size_t i = 0; i < count; ++i) {
          numbers[i] = T(0.03F * normal({}, i));
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

/// One layer on one device, ready to run for one micro-batch at capacity, on small random numbers
/// (integers are 0).
template <class Model, Backend B>
class LayerTrial {
 public:
  using Stream = typename B::Stream;

  LayerTrial(Model const& model,
             B& backend,
             DeviceId device,
             ModelDescription const& description,
             LayerId layer,
             RandomOperands<B> const& operands)
      : model_(model),
        layer_(layer),
        stream_(backend.make_stream(device, LaneKind::compute)),
        marks_{Marks(backend, device), Marks(backend, device)},
        bench_(description.layers[layer.index()]),
        memory_(backend.allocate_device(device, bench_.bytes())) {
    bench_.use(memory_.bytes());
    stream_.fill(memory_.bytes(), std::byte{0});
    bench_.for_each_operand([&](DeviceTensor const& tensor) { operands.fill(stream_, tensor); });
    call_.shape = description.capacity;
    call_.random.layer = static_cast<std::uint32_t>(layer.index());
  }

  /// The seconds of one forward.
  [[nodiscard]] double forward(bool saving) {
    auto& marks = marks_.front();
    stream_.record(marks.begin);
    enqueue_forward(saving);
    stream_.record(marks.end);
    marks.end.wait();
    return marks.end.seconds_since(marks.begin);
  }
  /// The seconds of one backward, after a saving forward.
  [[nodiscard]] double backward() {
    auto& marks = marks_.front();
    stream_.record(marks.begin);
    enqueue_backward();
    stream_.record(marks.end);
    marks.end.wait();
    return marks.end.seconds_since(marks.begin);
  }

  /// Enqueues a saving forward and a backward, behind at most one pair that is enqueued already.
  void enqueue_passes() {
    auto& marks = marks_[enqueued_++ % marks_.size()];
    stream_.record(marks.begin);
    enqueue_forward(true);
    stream_.record(marks.middle);
    enqueue_backward();
    stream_.record(marks.end);
  }
  /// Waits for the oldest pair that was enqueued. \returns its times.
  [[nodiscard]] LayerCost finish_passes() {
    auto& marks = marks_[finished_++ % marks_.size()];
    marks.end.wait();
    return {marks.middle.seconds_since(marks.begin), marks.end.seconds_since(marks.middle)};
  }

 private:
  struct Marks {
    Marks(B& backend, DeviceId device)
        : begin(backend.make_event(device)),
          middle(backend.make_event(device)),
          end(backend.make_event(device)) {}

    typename B::Event begin;
    typename B::Event middle;
    typename B::Event end;
  };

  void enqueue_forward(bool saving) {
    call_.saving = saving;
    ForwardContext<Stream> context(stream_, call_, bench_.tensors());
    model_.visit(layer_, [&]<Layer<Stream> L>(L const& layer) { layer.forward(context); });
  }
  void enqueue_backward() {
    BackwardContext<Stream> context(stream_, call_, bench_.tensors());
    model_.visit(layer_, [&]<Layer<Stream> L>(L const& layer) { layer.backward(context); });
  }

  Model const& model_;
  LayerId layer_;
  Stream stream_;
  std::array<Marks, 2> marks_;
  LayerBench<Stream> bench_;
  decltype(std::declval<B&>().allocate_device(DeviceId{}, Bytes{})) memory_;
  LayerCall call_;
  std::size_t enqueued_ = 0;  // pairs of passes
  std::size_t finished_ = 0;
};

/// Calls \p f(layer) for the first layer of each run of equal ones.
template <class Model, class F>
void for_each_different_layer(Model const& model, std::size_t layers, F&& f) {
  for (std::size_t i = 0; i < layers; ++i) {
    if (i == 0 || !are_equal(model, LayerId(i - 1), LayerId(i))) {
      f(LayerId(i));
    }
  }
}

}  // namespace detail

/// Runs forward and backward of every layer of \p model on device 0: once without counting, then
/// \p repetitions times, and on until \p seconds have passed (a device that has worked for a while
/// may be slower than one that begins). \returns the medians of the latter half. Of equal layers
/// the first is run. Memory for one layer is taken and given back.
/// \throws Error as the layers and the backend do.
template <class Model, Backend B>
[[nodiscard]] CostModel measure_costs(Model const& model,
                                      B& backend,
                                      ModelDescription const& description,
                                      std::size_t repetitions = 3,
                                      double seconds = 0) {
  detail::RandomOperands<B> const operands(backend);
  std::vector<LayerCost> costs(description.size());
  detail::for_each_different_layer(model, description.size(), [&](LayerId layer) {
    detail::LayerTrial<Model, B> trial(model, backend, DeviceId(0), description, layer, operands);
    std::vector<double> forward_s;
    std::vector<double> backward_s;
    double sum_s = 0;
    trial.enqueue_passes();
    for (bool more = true; more;) {
      // The next pair is there before this one is over, as in a pipeline: a device that pauses
      // after each is faster than one that does not.
      more = forward_s.size() < repetitions || sum_s < seconds;
      if (more) {
        trial.enqueue_passes();
      }
      auto const cost = trial.finish_passes();
      forward_s.push_back(cost.forward_s);
      backward_s.push_back(cost.backward_s);
      sum_s += forward_s.size() > 1 ? cost.forward_s + cost.backward_s : 0;
    }
    auto const median = [](std::vector<double>& times) {
      auto const first = times.begin() + static_cast<std::ptrdiff_t>((times.size() + 1) / 2);
      auto const middle = first + (times.end() - first - 1) / 2;
      std::nth_element(first, middle, times.end());
      return *middle;
    };
    costs[layer.index()] = {median(forward_s), median(backward_s)};
  });
  for (std::size_t i = 1; i < costs.size(); ++i) {
    if (detail::are_equal(model, LayerId(i - 1), LayerId(i))) {
      costs[i] = costs[i - 1];
    }
  }
  return CostModel(std::move(costs));
}

/// Runs every layer of \p model once on each of \p devices devices, in every way that a pipeline
/// runs it. Of equal layers the first is run. Memory for one layer is taken and given back.
/// \throws Error as the layers and the backend do.
template <class Model, Backend B>
void warm_up(Model const& model,
             B& backend,
             ModelDescription const& description,
             std::size_t devices) {
  detail::RandomOperands<B> const operands(backend);
  for (std::size_t d = 0; d < devices; ++d) {
    detail::for_each_different_layer(model, description.size(), [&](LayerId layer) {
      detail::LayerTrial<Model, B> trial(model, backend, DeviceId(d), description, layer, operands);
      static_cast<void>(trial.forward(false));
      static_cast<void>(trial.forward(true));
      static_cast<void>(trial.backward());
    });
  }
}

}  // namespace roundpipe
