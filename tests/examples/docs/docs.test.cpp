// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The code of docs/00_quickstart.md (except that in examples/quickstart.cpp), docs/01_layers.md,
// docs/03_transfers.md, docs/04_event_protocol.md and docs/07_own_backend.md (except that for
// GPUs). docs_are_tested.cmake looks for each of their blocks here.

#include <roundpipe/roundpipe.hpp>
#include <roundpipe/testing/check_layer.hpp>
#include <roundpipe/trace/chrome_trace.hpp>
#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace roundpipe;

struct Squash {
  std::int64_t width = 4;

  std::string name() const { return "squash"; }
  ParameterTable parameters() const {
    return {{{"gain", {width}, DType::f32}, Initial::ones(), DecayGroup::exempt}};
  }
  TensorTable input(BatchShape shape) const { return {{"x", extents(shape), DType::f32}}; }
  TensorTable boundary(BatchShape shape) const { return {{"y", extents(shape), DType::f32}}; }
  Footprint footprint(BatchShape shape) const {
    TensorCarver saved;  // without memory, it only counts
    take_kept(saved, shape);
    return {.saved_bytes = saved.used_bytes(), .workspace_bytes = 0};
  }

  void forward(ForwardContext<HostStream>& ctx) const {
    auto saved = ctx.saved();
    auto const kept = ctx.saving() ? take_kept(saved, ctx.shape()) : TensorView<float>{};
    ctx.stream().launch([kept,
                         x = ctx.input<float>(0),
                         gain = ctx.parameter<float>("gain"),
                         y = ctx.output<float>(0)] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        y[i] = std::tanh(gain[i % gain.size()] * x[i]);
      }
      if (!kept.empty()) {
        std::ranges::copy(y, kept.begin());
      }
    });
  }

  void backward(BackwardContext<HostStream>& ctx) const {
    auto saved = ctx.saved();
    auto const y = take_kept(saved, ctx.shape());
    ctx.stream().launch([y,
                         x = ctx.input<float>(0),
                         gain = ctx.parameter<float>("gain"),
                         dy = ctx.output_gradient<float>(0),
                         dx = ctx.input_gradient<float>(0),
                         dgain = ctx.parameter_gradient<float>("gain")] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        auto const dz = dy[i] * (1 - y[i] * y[i]);
        dgain[i % gain.size()] += dz * x[i];  // added to
        dx[i] = dz * gain[i % gain.size()];   // overwritten
      }
    });
  }

 private:
  Shape extents(BatchShape shape) const { return {shape.rows, shape.length, width}; }
  // The footprint and both functions carve with the same code, so they agree.
  TensorView<float> take_kept(TensorCarver& saved, BatchShape shape) const {
    return saved.take<float>(extents(shape));
  }
};

struct Dropout {
  std::int64_t width = 4;
  float rate = 0.25F;

  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const { return boundary(shape); }
  TensorTable boundary(BatchShape shape) const {
    return {{"x", {shape.rows, shape.length, width}, DType::f32}};
  }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    drop(ctx, ctx.input<float>(0), ctx.output<float>(0));
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    drop(ctx, ctx.output_gradient<float>(0), ctx.input_gradient<float>(0));
  }

 private:
  void drop(LayerContext<HostStream>& ctx, TensorView<float const> x, TensorView<float> y) const {
    auto const r = ctx.evaluating() ? 0.0F : rate;
    ctx.stream().launch([x, y, r, key = ctx.random().with_stream(0)] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        y[i] = uniform(random_word(key, i)) < r ? 0.0F : x[i] / (1 - r);
      }
    });
  }
};

struct Lookup {
  std::int64_t vocabulary = 5;
  std::int64_t width = 4;

  ParameterTable parameters() const {
    return {{{"table", {vocabulary, width}, DType::f32},
             Initial::normal(0.5F),
             DecayGroup::decayed,
             "token table"}};
  }
  TensorTable input(BatchShape) const { return {}; }
  TensorTable side_inputs(BatchShape shape) const {
    return {{"tokens", {shape.rows, shape.length}, DType::i32}};
  }
  TensorTable boundary(BatchShape shape) const {
    return {{"x", {shape.rows, shape.length, width}, DType::f32}};
  }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([tokens = ctx.side_input<std::int32_t>("tokens"),
                         table = ctx.parameter<float>("table"),
                         y = ctx.output<float>(0),
                         w = static_cast<std::size_t>(width)] {
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] = table[static_cast<std::size_t>(tokens[i / w]) * w + i % w];
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([tokens = ctx.side_input<std::int32_t>("tokens"),
                         dy = ctx.output_gradient<float>(0),
                         dtable = ctx.parameter_gradient<float>("table"),
                         w = static_cast<std::size_t>(width)] {
      for (std::size_t i = 0; i < dy.size(); ++i) {
        dtable[static_cast<std::size_t>(tokens[i / w]) * w + i % w] += dy[i];
      }
    });
  }
};

struct Guess {
  std::int64_t vocabulary = 5;
  std::int64_t width = 4;

  std::string name() const { return "guess"; }
  ParameterTable parameters() const { return Lookup{vocabulary, width}.parameters(); }  // tied
  TensorTable input(BatchShape shape) const {
    return {{"x", {shape.rows, shape.length, width}, DType::f32}};
  }
  TensorTable boundary(BatchShape) const { return {}; }
  TensorTable side_inputs(BatchShape shape) const {
    return {{"labels", {shape.rows, shape.length}, DType::i32}};  // -1: not counted
  }
  TensorTable results(BatchShape shape) const {
    return {{"guesses", {shape.rows, shape.length}, DType::i32}};
  }
  Footprint footprint(BatchShape) const {
    TensorCarver workspace;
    workspace.take<float>({vocabulary});
    return {.saved_bytes = 0, .workspace_bytes = workspace.used_bytes()};
  }
  // Runs on the host before the call, so it reads the batch: side inputs are host tensors here.
  std::int64_t loss_terms(std::span<HostTensor const> side_inputs, BatchShape) const {
    return std::ranges::count_if(side_inputs[0].as<std::int32_t>(),
                                 [](std::int32_t label) { return label >= 0; });
  }

  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([this_layer = *this,
                         p = ctx.workspace().take<float>({vocabulary}),
                         x = ctx.input<float>(0),
                         table = ctx.parameter<float>("table"),
                         labels = ctx.side_input<std::int32_t>("labels"),
                         guesses = ctx.wants_results() ? ctx.result<std::int32_t>("guesses")
                                                       : TensorView<std::int32_t>{},
                         loss = ctx.loss(),
                         scale = ctx.gradient_scale()] {
      double sum = 0;
      for (std::size_t i = 0; i < labels.size(); ++i) {
        this_layer.probabilities(i, x, table, p);
        if (labels[i] >= 0) {
          sum -= std::log(static_cast<double>(p[static_cast<std::size_t>(labels[i])]));
        }
        if (!guesses.empty()) {
          guesses[i] = static_cast<std::int32_t>(std::ranges::max_element(p) - p.begin());
        }
      }
      loss[0] = sum * scale;
    });
  }

  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([this_layer = *this,
                         p = ctx.workspace().take<float>({vocabulary}),
                         x = ctx.input<float>(0),
                         table = ctx.parameter<float>("table"),
                         labels = ctx.side_input<std::int32_t>("labels"),
                         dx = ctx.input_gradient<float>(0),
                         dtable = ctx.parameter_gradient<float>("table"),
                         scale = static_cast<float>(ctx.gradient_scale())] {
      auto const w = static_cast<std::size_t>(this_layer.width);
      std::ranges::fill(dx, 0.0F);
      for (std::size_t i = 0; i < labels.size(); ++i) {
        if (labels[i] < 0) {
          continue;
        }
        this_layer.probabilities(i, x, table, p);
        p[static_cast<std::size_t>(labels[i])] -= 1;
        for (std::size_t k = 0; k < p.size() * w; ++k) {
          auto const d = scale * p[k / w];
          dx[i * w + k % w] += d * table[k];
          dtable[k] += d * x[i * w + k % w];
        }
      }
    });
  }

 private:
  // The softmax of position i's products with all rows of the table.
  void probabilities(std::size_t i,
                     std::span<float const> x,
                     std::span<float const> table,
                     std::span<float> p) const {
    auto const w = static_cast<std::size_t>(width);
    std::ranges::fill(p, 0.0F);
    for (std::size_t k = 0; k < p.size() * w; ++k) {
      p[k / w] += table[k] * x[i * w + k % w];
    }
    auto const largest = std::ranges::max(p);
    float sum = 0;
    for (auto& value : p) {
      sum += value = std::exp(value - largest);
    }
    for (auto& value : p) {
      value /= sum;
    }
  }
};

static_assert(Layer<Squash, HostStream>);
static_assert(LossLayer<Guess> && HasResults<Guess>);

struct Chosen {
  std::vector<std::variant<Lookup, Squash, Guess>> layers;

  std::size_t layer_count() const { return layers.size(); }
  template <class F>
  decltype(auto) visit(LayerId id, F&& f) const {
    return std::visit(std::forward<F>(f), layers[id.index()]);
  }
};
static_assert(Model<Chosen, HostStream>);

/// y = x + shift, which may be frozen.
struct Shift {
  std::int64_t width = 4;
  bool frozen = false;

  ParameterTable parameters() const {
    return {{{"shift", {width}, DType::f32}, Initial::zeros(), DecayGroup::exempt, {}, frozen}};
  }
  TensorTable input(BatchShape shape) const {
    return {{"x", {shape.rows, shape.length, width}, DType::f32}};
  }
  TensorTable boundary(BatchShape shape) const { return input(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch(
        [x = ctx.input<float>(0), shift = ctx.parameter<float>("shift"), y = ctx.output<float>(0)] {
          for (std::size_t i = 0; i < x.size(); ++i) {
            y[i] = x[i] + shift[i % shift.size()];
          }
        });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([dy = ctx.output_gradient<float>(0),
                         dx = ctx.input_gradient<float>(0),
                         dshift = ctx.parameter_gradient<float>("shift")] {
      std::ranges::copy(dy, dx.begin());
      if (!dshift.empty()) {
        for (std::size_t i = 0; i < dy.size(); ++i) {
          dshift[i % dshift.size()] += dy[i];
        }
      }
    });
  }
};

struct Mark {
  std::int64_t width = 4;

  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const {
    return {{"x", {shape.rows, shape.length, width}, DType::f32}};
  }
  TensorTable boundary(BatchShape shape) const {
    return {{"x", {shape.rows, shape.length, width}, DType::f32},
            {"negative", {shape.rows, shape.length, width}, DType::u8}};
  }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.input<float>("x"),
                         y = ctx.output<float>("x"),
                         negative = ctx.output<std::uint8_t>("negative")] {
      for (std::size_t i = 0; i < x.size(); ++i) {
        y[i] = x[i];
        negative[i] = x[i] < 0 ? 1 : 0;
      }
    });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    // ctx.output_gradient(1) is not present(): integers have no gradient.
    ctx.stream().launch([dx = ctx.input_gradient<float>(0), dy = ctx.output_gradient<float>(0)] {
      std::ranges::copy(dy, dx.begin());
    });
  }
};

/// Takes Mark's tensors and negates the marked numbers.
struct Absolute {
  std::int64_t width = 4;

  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const { return Mark{width}.boundary(shape); }
  TensorTable boundary(BatchShape shape) const { return Mark{width}.input(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    turn(ctx, ctx.input<float>(0), ctx.output<float>(0));
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    CHECK_FALSE(ctx.input_gradient(1).present());
    turn(ctx, ctx.output_gradient<float>(0), ctx.input_gradient<float>(0));
  }

 private:
  static void turn(LayerContext<HostStream>& ctx,
                   TensorView<float const> from,
                   TensorView<float> to) {
    ctx.stream().launch([from, to, negative = ctx.input<std::uint8_t>("negative")] {
      for (std::size_t i = 0; i < from.size(); ++i) {
        to[i] = negative[i] != 0 ? -from[i] : from[i];
      }
    });
  }
};

// Four micro-batches of 2 x 3 positions.
std::vector<std::int32_t> const tokens{0, 1, 2, 3, 4, 0, 2, 2, 1, 0, 3, 4,
                                       4, 1, 3, 0, 2, 1, 1, 3, 0, 4, 4, 2};
std::vector<std::int32_t> const labels{1, 2, 3,  -1, 0, 1, 2, 1, 0, 3, 4, 4,
                                       1, 3, -1, 2,  1, 0, 3, 0, 4, 4, 2, -1};

Batch batch() {
  Batch result(4, {.rows = 2, .length = 3});
  result.set("tokens", tokens).set("labels", labels);
  return result;
}

// Takes a tensor that a skip connection has carried past layers.
struct Join {
  std::int64_t width = 4;

  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const {
    return {{"x", {shape.rows, shape.length, width}}, {"skip", {shape.rows, shape.length, width}}};
  }
  TensorTable boundary(BatchShape shape) const {
    return {{"y", {shape.rows, shape.length, width}}};
  }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch(
        [x = ctx.input<float>("x"), skip = ctx.input<float>("skip"), y = ctx.output<float>("y")] {
          for (std::size_t i = 0; i < y.size(); ++i) {
            y[i] = x[i] * skip[i];
          }
        });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ctx.stream().launch([x = ctx.input<float>("x"),
                         skip = ctx.input<float>("skip"),
                         dx = ctx.input_gradient<float>("x"),
                         dskip = ctx.input_gradient<float>("skip"),
                         dy = ctx.output_gradient<float>("y")] {
      for (std::size_t i = 0; i < dy.size(); ++i) {
        dx[i] = dy[i] * skip[i];
        dskip[i] = dy[i] * x[i];
      }
    });
  }
};

struct Gain {  // y = 2 x, and "mask" goes on as it is
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape shape) const {
    return {{"x", {shape.rows, shape.length}}, {"mask", {shape.rows, shape.length}, DType::u8}};
  }
  TensorTable boundary(BatchShape shape) const { return input(shape); }
  Footprint footprint(BatchShape) const { return {}; }
  Carries carries() const { return {.tensors = 1, .gradients = 1}; }
  void forward(ForwardContext<HostStream>& ctx) const {
    auto const from = ctx.input("mask"), to = ctx.output("mask");
    if (to.device_pointer() != from.device_pointer()) {
      ctx.stream().copy(to, from);
    }
    twice(ctx, ctx.input<float>("x"), ctx.output<float>("x"));
  }
  void backward(BackwardContext<HostStream>& ctx) const {  // integers have no gradient
    twice(ctx, ctx.output_gradient<float>("x"), ctx.input_gradient<float>("x"));
  }

 private:
  static void twice(LayerContext<HostStream>& ctx,
                    TensorView<float const> from,
                    TensorView<float> to) {
    ctx.stream().launch(
        [from, to] { std::ranges::transform(from, to.begin(), [](float x) { return 2 * x; }); });
  }
};

TEST_CASE("the layers of the page are sound") {
  HostBackend backend;  // or a cu::CudaBackend
  testing::require_sound(Squash{}, backend);
  testing::LayerCheckOptions options;
  options.capacity = {.rows = 3, .length = 4};
  options.smaller = {.rows = 2, .length = 3};
  options.integer = [](TensorSpec const&, std::size_t i) -> std::int64_t {
    return static_cast<std::int64_t>(i % 5);  // tokens and labels; default: 0 and 1 in turn
  };
  testing::require_sound(Lookup{}, backend, options);
  testing::require_sound(Guess{}, backend, options);
  testing::require_sound(Dropout{}, backend);
  testing::require_sound(Shift{}, backend);
  testing::require_sound(Shift{.frozen = true}, backend);
  testing::require_sound(Mark{}, backend);
  testing::require_sound(Absolute{}, backend);
  testing::require_sound(Join{}, backend);
  testing::require_sound(Gain{}, backend);
}

TEST_CASE("a layer can be called by hand on an inline stream") {
  BatchShape const shape{.rows = 1, .length = 2};
  Squash const layer{.width = 2};
  auto const facts = facts_of(layer, shape);
  AlignedMemory const gain(facts.parameters[0].tensor.bytes());
  AlignedMemory const x(facts.input.bytes());
  AlignedMemory const y(facts.boundary.bytes());
  AlignedMemory const saved(facts.footprint.saved_bytes);

  LayerTensors tensors;
  tensors.tables = &facts;  // names the tensors
  tensors.parameters = {{gain.device_bytes(), {2}, DType::f32}};
  tensors.inputs = views(facts.input, x.device_bytes());
  tensors.outputs = views(facts.boundary, y.device_bytes());
  tensors.saved = saved.device_bytes();
  std::ranges::fill(tensors.parameters[0].as<float>(), 2.0F);
  std::ranges::fill(tensors.inputs[0].as<float>(), 0.5F);

  HostStream stream;  // inline: work runs at once, on this thread
  LayerCall call;
  call.shape = shape;
  call.saving = true;
  ForwardContext<HostStream> ctx(stream, call, tensors);
  layer.forward(ctx);
  CHECK(tensors.outputs[0].as<float>()[3] == doctest::Approx(std::tanh(1.0)));
}

TEST_CASE("a frozen parameter has no gradient, and the input's is the same") {
  CHECK_FALSE(Shift{}.parameters()[0].frozen);
  CHECK(Shift{.frozen = true}.parameters()[0].frozen);
  BatchShape const shape{.rows = 1, .length = 2};
  Shift const layer{.width = 2};
  auto const facts = facts_of(layer, shape);
  AlignedMemory const gradients(3 * 256);
  TensorTable const table{
      {"dy", {4}, DType::f32}, {"dx", {4}, DType::f32}, {"ds", {2}, DType::f32}};
  auto const d = views(table, gradients.device_bytes());
  HostStream stream;
  LayerCall call;
  call.shape = shape;
  for (bool const frozen : {false, true}) {
    std::ranges::fill(d[0].as<float>(), 0.5F);
    std::ranges::fill(d[1].as<float>(), 0.0F);
    std::ranges::fill(d[2].as<float>(), 1.0F);
    LayerTensors tensors;
    tensors.tables = &facts;
    tensors.output_gradients = {d[0]};
    tensors.input_gradients = {d[1]};
    tensors.parameter_gradients = {frozen ? DeviceTensor{} : d[2]};
    BackwardContext<HostStream> ctx(stream, call, tensors);
    layer.backward(ctx);
    CHECK(d[1].as<float>()[3] == 0.5F);
    CHECK(d[2].as<float>()[1] == (frozen ? 1.0F : 2.0F));
  }
}

TEST_CASE("a protocol is chosen, and a plan is verified") {
  Sequential const model{Lookup{}, repeat(2, Squash{}), Guess{}};
  HostBackend backend;
  PipelineOptions const options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4};
  Pipeline pipeline{model, AdamW{}, backend, options, Policies{.protocol = BlockingProtocol{0}}};
  pipeline.forward_backward(batch());
  pipeline.step();
  auto const& call = pipeline.plan().graph;
  auto const devices = call.devices;
  auto const step = build_step_graph(pipeline.plan().blocks, BlockingProtocol{0}, {});
  auto const violations = verify(GraphSequence(devices).add(call).add(step).add(call).add(step));
  CHECK(violations.empty());
}

TEST_CASE("skip connections carry tensors past layers") {
  Sequential const skipping{
      Lookup{},
      skip(fork(Squash{}),  // its output goes on twice: to the next layer, and past the next layers
           repeat(2, Squash{}),
           skip(Mark{}, Squash{}, Absolute{}),  // carries "negative", the last tensor of Mark
           reads_skip(Join{}),                  // reads the Squash's output; it goes on
           Join{}),                             // takes it
      Guess{}};
  std::string boundaries;
  for (auto const& layer : describe(skipping, {.rows = 1, .length = 1}).layers) {
    boundaries += "|";
    for (auto const& tensor : layer.boundary) {
      boundaries += " " + tensor.name;
    }
  }
  CHECK(boundaries ==
        "| x| y skip| y skip| y skip| x negative skip| y negative skip| x skip| y skip| y|");
  SerialOptions const options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4};
  SerialTrainer serial{skipping, AdamW(), options};
  HostBackend backend;
  Pipeline pipeline{skipping,
                    AdamW(),
                    backend,
                    PipelineOptions{.capacity = options.capacity, .micro_batches_per_round = 4},
                    Policies{.protocol = LayerEventProtocol({.staleness = 0})}};
  for (int step = 0; step < 3; ++step) {
    CHECK(serial.forward_backward(batch()) == pipeline.forward_backward(batch()));
    serial.step();
    pipeline.step();
  }
  CHECK(weights_digest(serial) == weights_digest(pipeline));
}

TEST_CASE("gradients agree with differences of the loss") {
  Sequential const model{
      Lookup{}, Squash{}, Mark{}, Absolute{}, repeat(2, Squash{}), Dropout{.rate = 0}, Guess{}};
  SerialOptions const options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4};
  SerialTrainer trainer{model, Sgd(), options};
  std::vector<float> table(20), gradient(20);  // Lookup's table, 5 x 4
  trainer.read_parameter("0.table", table);
  trainer.forward_backward(batch());
  trainer.read_gradient("0.table", gradient);
  for (std::size_t i = 0; i < table.size(); ++i) {
    auto const loss_at = [&](float difference) {
      auto moved = table;
      moved[i] += difference;
      trainer.write_parameter("0.table", moved);
      return trainer.evaluate(batch()).loss;
    };
    auto const slope = (loss_at(0.01F) - loss_at(-0.01F)) / 0.02;
    CHECK(gradient[i] == doctest::Approx(slope).epsilon(0.01));
  }
}

TEST_CASE("a pipeline ends with the bits of the serial trainer") {
  Sequential const model{Lookup{}, repeat(3, Squash{}), Dropout{}, Guess{}};
  BatchShape const capacity{.rows = 2, .length = 3};
  SerialTrainer serial{
      model,
      AdamW(),
      SerialOptions{.capacity = capacity, .micro_batches_per_round = 4, .seed = 7, .staleness = 1}};
  HostBackendOptions machine;
  machine.devices = 3;
  HostBackend backend(machine);
  Pipeline pipeline{model,
                    AdamW(),
                    backend,
                    PipelineOptions{.capacity = capacity, .micro_batches_per_round = 4, .seed = 7}};
  for (int step = 0; step < 5; ++step) {
    CHECK(serial.forward_backward(batch()) == pipeline.forward_backward(batch()));
    serial.step();
    pipeline.step();
  }
  CHECK(weights_digest(serial) == weights_digest(pipeline));
}

TEST_CASE("a loop posts each call before it takes the loss of the one before") {
  Sequential const model{Lookup{}, repeat(3, Squash{}), Guess{}};
  HostBackend backend;
  HostBackend other_backend;
  PipelineOptions const options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4};
  Pipeline pipeline{model, AdamW(), backend, options};
  Pipeline other{model, AdamW(), other_backend, options};
  auto const next_batch = [&](int) { return batch(); };

  pipeline.post_call(next_batch(1));
  pipeline.step();
  for (int step = 2; step <= 10; ++step) {
    pipeline.post_call(next_batch(step));
    pipeline.step();
    std::printf("step %2d: loss %.4f\n", step - 1, pipeline.take_loss());
  }
  std::printf("step %2d: loss %.4f\n", 10, pipeline.take_loss());

  for (int step = 1; step <= 10; ++step) {
    other.forward_backward(next_batch(step));
    other.step();
  }
  CHECK(weights_digest(pipeline) == weights_digest(other));
}

/// Refuses tokens that are not in the table, when it runs.
struct StrictLookup : Lookup {
  void forward(ForwardContext<HostStream>& ctx) const {
    ctx.stream().launch([tokens = ctx.side_input(0).as<std::int32_t const>(), v = vocabulary] {
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (tokens.device_pointer()[i] >= v) {
          throw std::out_of_range("there is no such token");
        }
      }
    });
    Lookup::forward(ctx);
  }
};

TEST_CASE("a training goes on after a bad batch") {
  Sequential const model{StrictLookup{}, repeat(3, Squash{}), Guess{}};
  HostBackend backend;
  Pipeline pipeline{
      model,
      AdamW(),
      backend,
      PipelineOptions{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4}};
  std::vector<std::int32_t> const bad(tokens.size(), 9);
  int bad_batches = 0;
  auto const next_batch = [&](std::uint64_t done) {
    auto result = batch();
    if (done == 2 && bad_batches++ == 0) {
      result.set("tokens", bad);
    }
    return result;
  };
  std::uint64_t step = 0;  // steps that are done
  while (step < 6) {
    try {
      pipeline.forward_backward(next_batch(step));
      pipeline.step();
      ++step;
    } catch (Error const& error) {
      std::printf("behind step %d: %s\n", static_cast<int>(step), error.what());
      step = pipeline.recover();
    }
  }
  CHECK(bad_batches > 0);
  CHECK(pipeline.report().steps == 6);
}

TEST_CASE("a checked pipeline tells where a NaN comes from") {
  Sequential const model{Lookup{}, repeat(3, Squash{}), Guess{}};
  HostBackend backend;
  HostBackend other_backend;
  PipelineOptions options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4};
  Pipeline pipeline{model, AdamW(), backend, options};
  pipeline.forward_backward(batch());
  pipeline.step();
  std::vector<float> gains(4, 1);
  gains[3] = std::numeric_limits<float>::quiet_NaN();
  pipeline.write_parameter("2.gain", gains);
  auto const bad_batch = batch();
  auto const failure = test::error_of([&] { pipeline.forward_backward(bad_batch); });
  CHECK(failure.code() == Errc::not_finite);
  CHECK(failure.message() == "the loss of step 2 is not finite: stage 0, layer 4 (guess)");

  pipeline.recover();           // to the last finished step
  options.check_finite = true;  // waits for each pass
  Pipeline checked{model, AdamW(), other_backend, options};
  checked.restore(pipeline.state());
  try {
    checked.forward_backward(bad_batch);
  } catch (Error const& error) {
    std::printf("%s\n", error.what());
  }
  auto const again = test::error_of([&] { checked.forward_backward(bad_batch); });
  CHECK(again.message() ==
        "recompute of layer 2 (squash), stage 0, round 0, micro-batch 0, device 0: "
        "output 'y'[3] is nan");
}

TEST_CASE("a pipeline reports its plan, its losses, its results and its weights") {
  Sequential const model{Lookup{}, repeat(3, Squash{}), Guess{}};

  HostBackendOptions machine;
  machine.devices = 3;
  machine.device_memory_bytes = 64_MiB;        // a hard budget
  machine.link.upload_bytes_per_second = 1e9;  // 0, the default: as fast as memory
  machine.link.download_bytes_per_second = 1e9;
  HostBackend backend(machine);

  Pipeline pipeline{
      model,
      AdamW({.rate = LearningRate::warmup_cosine(1e-2, 10, 100)}),
      backend,
      PipelineOptions{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 2},
      Policies{.protocol = LayerEventProtocol({.staleness = 0})}};

  auto const& stages = pipeline.plan().stages.partition;
  std::printf(
      "%zu forward and %zu backward stages\n", stages.forward.size(), stages.backward.size());
  for (auto const& line : pipeline.plan().ledger) {
    std::printf("%-50s %s\n", line.name.c_str(), format_bytes(line.bytes).c_str());
  }

  auto const evaluation = pipeline.evaluate(batch());
  auto const loss = evaluation.loss;
  auto const guesses = evaluation.result<std::int32_t>(3, 0);  // of the fourth micro-batch
  std::vector<float> table(20);
  pipeline.read_parameter("0.table", table);  // the parameter "table" of layer 0

  CHECK(loss > 0);
  CHECK(guesses.size() == 6);
  CHECK(std::ranges::all_of(guesses, [](auto guess) { return guess >= 0 && guess < 5; }));
  CHECK(std::ranges::any_of(table, [](float value) { return value != 0; }));
}

void save(TrainingState const& state, std::filesystem::path const& folder) {
  auto const write = [&](std::string const& name, std::span<std::byte const> bytes) {
    std::ofstream file(folder / name, std::ios::binary);
    file.write(reinterpret_cast<char const*>(bytes.data()), std::ssize(bytes));
    file.close();
    require(!file.fail(), Errc::invalid_argument, "a file of the state cannot be written");
  };
  write("position", std::as_bytes(std::span(&state.position, 1)));
  for_each_tensor(state, [&](auto const& name, auto const& tensor) { write(name, tensor.bytes); });
}

template <class Trainer>
void load(Trainer& trainer, std::filesystem::path const& folder) {
  auto const read = [&](std::string const& name, std::span<std::byte> bytes) {
    std::ifstream file(folder / name, std::ios::binary);
    file.read(reinterpret_cast<char*>(bytes.data()), std::ssize(bytes));
    require(!file.fail(), Errc::invalid_argument, "a file of the state cannot be read");
  };
  auto state = trainer.state();  // names, shapes and types
  read("position", std::as_writable_bytes(std::span(&state.position, 1)));
  std::deque<std::vector<std::byte>> memory;
  for_each_tensor(state, [&](auto const& name, HostTensor& tensor) {
    auto& bytes = memory.emplace_back(tensor.bytes.size());
    read(name, bytes);
    tensor.bytes = bytes;
  });
  trainer.restore(state);
}

TEST_CASE("a training goes on in another pipeline, also from files") {
  Sequential const model{Lookup{}, repeat(3, Squash{}), Dropout{}, Guess{}};
  PipelineOptions const options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4};
  HostBackend backend;
  Pipeline pipeline{model, AdamW(), backend, options};
  auto const train = [](auto& trainer) {
    for (int step = 0; step < 3; ++step) {
      trainer.forward_backward(batch());
      trainer.step();
    }
    return weights_digest(trainer);
  };
  train(pipeline);
  test::TemporaryFolder const folder;
  save(pipeline.state(), folder.path);

  HostBackendOptions machine;
  machine.devices = 3;
  HostBackend other_backend(machine);
  Pipeline resumed{model, AdamW(), other_backend, options};
  resumed.restore(pipeline.state());

  Pipeline reloaded{model, AdamW(), other_backend, options};
  load(reloaded, folder.path);
  auto const expected = train(pipeline);
  CHECK(train(resumed) == expected);
  CHECK(train(reloaded) == expected);
}

/// A part of every tensor in every window; activations only when they are needed.
struct EvenParts {
  std::vector<Chunk> chunks(std::span<Bytes const> tensors, std::size_t windows) const {
    std::vector<Chunk> chunks(windows);
    for (std::size_t w = 0; w < windows; ++w) {
      chunks[w].window = w;
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        auto const begin = cut(tensors[t], w, windows), end = cut(tensors[t], w + 1, windows);
        if (begin < end) {
          chunks[w].pieces.push_back({t, begin, end - begin});
        }
      }
    }
    return chunks;
  }
  std::size_t activations_in_flight() const { return 1; }

 private:
  // Whole multiples of 256 bytes, so that no element lies in two pieces.
  static Bytes cut(Bytes bytes, std::size_t part, std::size_t parts) {
    return part == parts ? bytes : bytes / 256 * part / parts * 256;
  }
};

TEST_CASE("a user's own policy plans the copies") {
  PriorityTransferEngine const engine;
  std::vector<Bytes> const tensors{96_MiB, 32_MiB, 1_MiB};
  for (auto const& chunk : engine.chunks(tensors, 4)) {
    std::printf("window %zu: %s\n", chunk.window, format_bytes(chunk.bytes()).c_str());
  }

  Bytes covered = 0;
  for (auto const& chunk : EvenParts{}.chunks(tensors, 3)) {
    covered += chunk.bytes();
  }
  CHECK(covered == 129_MiB);

  Sequential const model{Lookup{}, repeat(3, Squash{}), Guess{}};
  HostBackend backend;
  PipelineOptions const options{
      .capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4, .timeline_calls = 6};
  Pipeline planned{model, Sgd{}, backend, options};
  Pipeline pipeline{model, Sgd{}, backend, options, Policies{.transfers = EvenParts{}}};
  for (int i = 0; i < 3; ++i) {
    CHECK(planned.forward_backward(batch()) == pipeline.forward_backward(batch()));
    planned.step();
    pipeline.step();
  }

  auto const report = pipeline.report();
  for (auto const share : report.device_busy) {
    std::printf("a device computed for %.0f %% of the time\n", 100 * share);
  }
  auto const device_s = report.training_s * static_cast<double>(report.device_busy.size());
  for (auto const cause : {BubbleCause::transfer_stall, BubbleCause::memory_stall}) {
    std::printf("%s: %.1f %%\n", name_of(cause), 100 * report.bubbles[cause] / device_s);
  }

  test::TemporaryFolder const folder;
  auto const path = folder.path / "trace.json";
  write_chrome_trace(pipeline.timeline(), path);  // for ui.perfetto.dev
  CHECK(std::filesystem::file_size(path) > 0);
}

/// Counts the bytes that go up, and leaves everything else to the host backend.
class CountingBackend {
 public:
  using Event = HostBackend::Event;
  using Fence = HostBackend::Fence;

  class Stream {
   public:
    Stream(HostStream stream, std::atomic<Bytes>& uploaded)
        : stream_(std::move(stream)), uploaded_(&uploaded) {}
    void record(Event& event) { stream_.record(event); }
    void wait(Event const& event) { stream_.wait(event); }
    void wait(Fence const& fence, std::uint64_t value) { stream_.wait(fence, value); }
    void copy(DeviceBytes to, HostSpan<std::byte const> from) {
      *uploaded_ += from.size();
      stream_.copy(to, from);
    }
    void copy(HostBytes to, DeviceSpan<std::byte const> from) { stream_.copy(to, from); }
    void fill(DeviceBytes to, std::byte value) { stream_.fill(to, value); }
    void round(DeviceSpan<BFloat16> to, DeviceSpan<float const> from) { stream_.round(to, from); }
    void round(DeviceSpan<Float16> to, DeviceSpan<float const> from) { stream_.round(to, from); }
    template <class F>
    void launch(F work) {  // the concept does not ask for it, its layers do
      stream_.launch(std::move(work));
    }

   private:
    HostStream stream_;
    std::atomic<Bytes>* uploaded_;
  };

  explicit CountingBackend(HostBackendOptions options = {}) : backend_(std::move(options)) {}

  std::size_t device_count() const { return backend_.device_count(); }
  DeviceProperties device_properties(DeviceId device) const {
    return backend_.device_properties(device);
  }
  Stream make_stream(DeviceId device, LaneKind kind) {
    return {backend_.make_stream(device, kind), uploaded_};
  }
  Event make_event(DeviceId device) { return backend_.make_event(device); }
  Fence make_fence() { return backend_.make_fence(); }
  auto allocate_device(DeviceId device, Bytes bytes) {
    return backend_.allocate_device(device, bytes);
  }
  auto allocate_host(Bytes bytes) { return backend_.allocate_host(bytes); }
  void abort() { backend_.abort(); }

  Bytes uploaded() const { return uploaded_; }

 private:
  HostBackend backend_;
  std::atomic<Bytes> uploaded_{0};  // several issuing threads add to it
};

static_assert(Backend<CountingBackend>);

/// y = x, on any stream that can launch.
struct Hand {
  bool first = false;
  ParameterTable parameters() const { return {{{"unused", {64}}, Initial::zeros()}}; }
  TensorTable boundary(BatchShape s) const { return {{"x", {s.rows}}}; }
  TensorTable input(BatchShape s) const { return first ? TensorTable{} : boundary(s); }
  TensorTable side_inputs(BatchShape s) const { return first ? boundary(s) : TensorTable{}; }
  Footprint footprint(BatchShape) const { return {}; }
  void forward(auto& ctx) const {
    ctx.stream().launch([x = first ? ctx.side_input(0) : ctx.input(0), y = ctx.output(0)] {
      std::ranges::copy(x.template as<float>(), y.template as<float>().begin());
    });
  }
  void backward(auto& ctx) const {
    if (!first) {
      ctx.stream().launch([dy = ctx.output_gradient(0), dx = ctx.input_gradient(0)] {
        std::ranges::copy(dy.template as<float>(), dx.template as<float>().begin());
      });
    }
  }
};

/// The mean of all numbers.
struct Mean {
  ParameterTable parameters() const { return {}; }
  TensorTable input(BatchShape s) const { return {{"x", {s.rows}}}; }
  TensorTable boundary(BatchShape) const { return {}; }
  Footprint footprint(BatchShape) const { return {}; }
  std::int64_t loss_terms(HostSpan<HostTensor const>, BatchShape s) const { return s.rows; }
  void forward(auto& ctx) const {
    ctx.stream().launch([x = ctx.input(0), loss = ctx.loss(), scale = ctx.gradient_scale()] {
      loss[0] = 0;
      for (auto const value : x.template as<float>()) {
        loss[0] += scale * value;
      }
    });
  }
  void backward(auto& ctx) const {
    ctx.stream().launch([dx = ctx.input_gradient(0), scale = ctx.gradient_scale()] {
      std::ranges::fill(dx.template as<float>(), static_cast<float>(scale));
    });
  }
};

TEST_CASE("a pipeline runs on a user's own backend") {
  HostBackendOptions machine;
  machine.devices = 2;
  CountingBackend backend(machine);
  PipelineOptions const options{.capacity = {.rows = 2}, .micro_batches_per_round = 2};
  std::vector<float> const x{1, 2, 3, 6};
  {
    Pipeline pipeline{Sequential{Hand{true}, repeat(3, Hand{}), Mean{}}, Sgd{}, backend, options};
    CHECK(pipeline.forward_backward(Batch(2, {2}).set("x", x)) == 3);
    pipeline.step();
    pipeline.synchronize();
  }
  CHECK(backend.uploaded() >= 4 * 64 * sizeof(float));  // the parameters of four layers
}

TEST_CASE("a test double delays and fails") {
  HostBackendOptions machine;
  machine.devices = 2;
  machine.link = {.upload_bytes_per_second = 1e9, .download_bytes_per_second = 1e9};
  machine.root_bytes_per_second = 1.5e9;  // all devices and both directions together
  machine.delay = [](DeviceId, LaneKind kind) {
    return std::chrono::microseconds(kind == LaneKind::compute ? 100 : 0);
  };
  machine.fault = [](DeviceId device, LaneKind kind, std::uint64_t number) {
    if (device == DeviceId(1) && kind == LaneKind::parameter_up && number == 2) {
      throw Error(Errc::device_fault, "the link is down");
    }
  };
  HostBackend backend(machine);

  PipelineOptions const options{.capacity = {.rows = 2, .length = 3}, .micro_batches_per_round = 4};
  Sequential const model{Lookup{}, repeat(3, Squash{}), Guess{}};
  auto const train = [&] {
    Pipeline pipeline{model, Sgd{}, backend, options};
    for (int i = 0; i < 10; ++i) {
      pipeline.forward_backward(batch());
      pipeline.step();
    }
    pipeline.synchronize();
  };
  CHECK_THROWS_AS(train(), Error);
}

}  // namespace
