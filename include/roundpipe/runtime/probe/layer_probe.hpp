// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief One layer of a model, run by itself on a device.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/model.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/runtime/probe/random_operands.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace roundpipe {

namespace detail {

/// The tensors of one layer, laid out in one device block.
class LayerProbeTensors {
 public:
  /// With a carver that only counts, the tensors have no place. \p facts must outlive the tensors.
  explicit LayerProbeTensors(LayerFacts const& facts, TensorCarver carver = {}) {
    place(facts, carver);
  }

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  /// Those of a training call.
  [[nodiscard]] LayerTensors const& tensors() const noexcept { return tensors_; }
  /// Those of an evaluation: the layer's results, too.
  [[nodiscard]] LayerTensors evaluation_tensors() const;

  /// Calls \p f with every floating tensor that a layer only reads, and with what it is like in
  /// training: a parameter is as it starts, inputs are about 1, as norms make them, and gradients
  /// are small.
  template <class F>
  void for_each_operand(F&& f) const {
    auto const visit = [&](DeviceTensor const& tensor, Initial like) {
      if (tensor.present() && is_floating(tensor.dtype())) {
        f(tensor, like);
      }
    };
    for (std::size_t i = 0; i < tensors_.parameters.size(); ++i) {
      visit(tensors_.parameters[i], tensors_.tables->parameters[i].initial);
    }
    for (auto const* list : {&tensors_.inputs, &tensors_.side_inputs}) {
      for (auto const& tensor : *list) {
        visit(tensor, Initial::normal(1));
      }
    }
    for (auto const& tensor : tensors_.output_gradients) {
      visit(tensor, small_numbers);
    }
  }

 private:
  void place(LayerFacts const& facts, TensorCarver carver);

  LayerTensors tensors_;
  std::vector<DeviceTensor> results_;
  Bytes bytes_ = 0;
};

/// Whether two layers of \p model are known to be copies of each other.
template <class Model>
[[nodiscard]] bool are_equal(Model const& model, LayerId a, LayerId b) {
  if constexpr (HasRuns<Model>) {
    return model.run_of(a) == model.run_of(b);
  } else {
    return false;
  }
}

/// One layer on one device, ready to run one micro-batch of the description's shape. What it reads
/// is random, integers are 0.
template <class Model, Backend B>
class LayerProbe {
 public:
  using Stream = typename B::Stream;

  /// The bytes of device memory that a probe takes.
  [[nodiscard]] static Bytes bytes_of(LayerFacts const& facts) {
    return LayerProbeTensors(facts).bytes();
  }

  /// \p block and everything passed by reference must outlive the probe.
  LayerProbe(Model const& model,
             B& backend,
             DeviceId device,
             ModelDescription const& description,
             LayerId layer,
             RandomOperands<B>& operands,
             DeviceBytes block)
      : model_(model),
        backend_(backend),
        device_(device),
        layer_(layer),
        stream_(backend.make_stream(device, LaneKind::compute)),
        marks_{Marks(backend, device), Marks(backend, device)},
        tensors_(description.layers[layer.index()], TensorCarver(block)) {
    stream_.fill(block.subspan(0, tensors_.bytes()), std::byte{0});
    tensors_.for_each_operand(
        [&](DeviceTensor const& tensor, Initial like) { operands.fill(stream_, tensor, like); });
    call_.shape = description.capacity;
    call_.random.layer = static_cast<std::uint32_t>(layer.index());
  }

  /// The seconds of one forward.
  [[nodiscard]] double forward(bool saving) {
    return seconds_of([&] { enqueue_forward(saving); });
  }
  /// The seconds of one forward of an evaluation.
  [[nodiscard]] double evaluate() {
    auto call = call_;
    call.saving = false;
    call.evaluating = true;
    auto const tensors = tensors_.evaluation_tensors();
    return seconds_of([&] { enqueue_forward(call, tensors); });
  }
  /// The seconds of one backward, after a saving forward.
  [[nodiscard]] double backward() {
    return seconds_of([&] { enqueue_backward(); });
  }

  /// The seconds of one recomputation that finds each of the \p levels lowest save levels, after a
  /// saving forward, and whose output nobody reads. There is no pause between them.
  [[nodiscard]] std::vector<double> replays(std::size_t levels) {
    auto call = call_;
    call.saving = true;
    call.wants_output = false;
    std::vector<typename B::Event> marks;
    auto const mark = [&] { stream_.record(marks.emplace_back(backend_.make_event(device_))); };
    enqueue_forward(call, tensors_.tensors());  // so that the device works already
    mark();
    for (std::size_t level = 0; level < levels; ++level) {
      call.found_level = level;
      enqueue_forward(call, tensors_.tensors());
      mark();
    }
    marks.back().wait();
    std::vector<double> seconds(levels);
    for (std::size_t level = 0; level < levels; ++level) {
      seconds[level] = marks[level + 1].seconds_since(marks[level]);
    }
    return seconds;
  }

  /// Enqueues a saving forward and a backward. At most one earlier pair may still be unfinished.
  void enqueue_passes() {
    auto& marks = marks_[enqueued_++ % marks_.size()];
    stream_.record(marks.begin);
    enqueue_forward(true);
    stream_.record(marks.middle);
    enqueue_backward();
    stream_.record(marks.end);
  }
  /// Waits for the oldest enqueued pair and returns its times.
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

  template <class F>
  [[nodiscard]] double seconds_of(F&& enqueue) {
    auto& marks = marks_.front();
    stream_.record(marks.begin);
    enqueue();
    stream_.record(marks.end);
    marks.end.wait();
    return marks.end.seconds_since(marks.begin);
  }

  void enqueue_forward(bool saving) {
    call_.saving = saving;
    enqueue_forward(call_, tensors_.tensors());
  }
  void enqueue_forward(LayerCall const& call, LayerTensors const& tensors) {
    ForwardContext<Stream> context(stream_, call, tensors);
    model_.visit(layer_, [&](auto const& layer) { layer.forward(context); });
  }
  void enqueue_backward() {
    BackwardContext<Stream> context(stream_, call_, tensors_.tensors());
    model_.visit(layer_, [&](auto const& layer) { layer.backward(context); });
  }

  Model const& model_;
  B& backend_;
  DeviceId device_;
  LayerId layer_;
  Stream stream_;
  std::array<Marks, 2> marks_;
  LayerProbeTensors tensors_;
  LayerCall call_;
  std::size_t enqueued_ = 0;  // pairs of passes
  std::size_t finished_ = 0;
};

/// Calls \p f, in which \p layer runs on \p device.
/// \throws Error where \p f throws: what it says, behind \p purpose, the layer and the device.
template <class F>
void run_probe(char const* purpose,
               ModelDescription const& description,
               LayerId layer,
               DeviceId device,
               F&& f) {
  try {
    f();
  } catch (...) {
    throw current_error(std::string(purpose) + " of " + description.name_of(layer.index()) +
                        ", device " + std::to_string(device.value()) + ": ");
  }
}

/// The \p layers layers of \p model, as runs of equal ones.
template <class Model>
[[nodiscard]] std::vector<LayerRange> runs_of_equal_layers(Model const& model, std::size_t layers) {
  std::vector<LayerRange> runs;
  for (std::size_t i = 0; i < layers; ++i) {
    if (i == 0 || !are_equal(model, LayerId(i - 1), LayerId(i))) {
      runs.push_back({i, 0});
    }
    ++runs.back().count;
  }
  return runs;
}

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/probe/impl/layer_probe.ipp>
#endif
