// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How close do the reference layers come to the libraries below them? The bench compares a
// transformer block and a head with the sum of their bare matrix products and attention, at the
// shapes of Llama 3.1 8B and Qwen3 1.7B with 16,384 tokens in bf16; and the element-wise operations
// with a copy. `of_bare` is the time of the bare calls over the layer's time. `of_copy` is the
// bytes a second that an operation must move, over those of a device's copy. All measurements are
// medians of one run in which they take turns. How much slower is a block while copies run both
// ways? `of_alone` is its time alone over that beside copies, and `copies_of_memory` the bytes a
// second that these move, over the peak of the device's memory.

#include <roundpipe/core/median.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <roundpipe/nn/language_model_head.hpp>
#include <roundpipe/nn/transformer_block.hpp>
#include <roundpipe/runtime/probe/measure_costs.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace {

using namespace roundpipe;
using Ops = cu::CudaOps;

DeviceId const device{0};
constexpr BatchShape tokens{8, 2048};
constexpr std::size_t turns = 15;

nn::TransformerConfig llama_8b() {
  return {.vocabulary = 128256,
          .hidden = 4096,
          .heads = 32,
          .kv_heads = 8,
          .head_dim = 128,
          .intermediate = 14336,
          .storage = DType::bf16,
          .parameter = DType::bf16,
          .loss_chunk = 2048};
}
nn::TransformerConfig qwen_1_7b() {
  return {.vocabulary = 151936,
          .hidden = 2048,
          .heads = 16,
          .kv_heads = 8,
          .head_dim = 128,
          .intermediate = 6144,
          .query_key_norm = true,
          .storage = DType::bf16,
          .parameter = DType::bf16,
          .loss_chunk = 2048};
}

/// A device, a stream, and tensors of random numbers with the same lifetime.
class Bench {
 public:
  Bench()
      : stream_(backend_.make_stream(device, LaneKind::compute)),
        begin_(backend_.make_event(device)),
        end_(backend_.make_event(device)),
        operands_(backend_) {}

  [[nodiscard]] cu::CudaBackend& backend() noexcept { return backend_; }
  [[nodiscard]] cu::CudaStream& stream() noexcept { return stream_; }
  [[nodiscard]] auto& operands() noexcept { return operands_; }

  DeviceTensor take(Shape const& shape, DType type = DType::bf16) {
    slabs_.push_back(backend_.allocate_device(device, shape.size() * size_of(type)));
    DeviceTensor const tensor(slabs_.back().bytes(), shape, type);
    if (is_floating(type)) {
      operands_.fill(stream_, tensor);
    } else {
      stream_.fill(slabs_.back().bytes(), std::byte{0});
    }
    return tensor;
  }
  DeviceBytes scratch(Bytes bytes) {
    slabs_.push_back(backend_.allocate_device(device, bytes));
    return slabs_.back().bytes();
  }

  double seconds(std::function<void()> const& enqueue) {
    stream_.record(begin_);
    enqueue();
    stream_.record(end_);
    end_.wait();
    return end_.seconds_since(begin_);
  }

 private:
  cu::CudaBackend backend_;
  cu::CudaStream stream_;
  cu::CudaEvent begin_;
  cu::CudaEvent end_;
  detail::RandomOperands<cu::CudaBackend> operands_;
  std::vector<cu::CudaBackend::DeviceSlab> slabs_;
};

/// The medians of some measurements that take turns, after one warm-up turn.
std::vector<double> medians(std::vector<std::function<double()>> const& measurements) {
  std::vector<std::vector<double>> times(measurements.size());
  for (std::size_t turn = 0; turn <= turns; ++turn) {
    for (std::size_t i = 0; i < measurements.size(); ++i) {
      auto const seconds = measurements[i]();
      if (turn > 0) {
        times[i].push_back(seconds);
      }
    }
  }
  std::vector<double> result;
  for (auto& list : times) {
    result.push_back(detail::median(list).value());
  }
  return result;
}

/// A layer as a model of its own, for \ref detail::LayerProbe.
template <class L>
struct Single {
  L layer;
  template <class F>
  auto visit(LayerId, F&& f) const {
    return f(layer);
  }
};

/// A layer by itself on the bench's device.
template <class L>
class Probed {
 public:
  Probed(Bench& bench, L const& layer)
      : model_{layer},
        description_{tokens, {detail::DescribeLayer{tokens}(layer)}},
        memory_(
            bench.backend().allocate_device(device, Probe::bytes_of(description_.layers.front()))),
        probe_(model_,
               bench.backend(),
               device,
               description_,
               LayerId(0),
               bench.operands(),
               memory_.bytes()) {}
  Probed(Probed const&) = delete;  // the probe refers to the rest
  Probed& operator=(Probed const&) = delete;

  [[nodiscard]] auto* operator->() noexcept { return &probe_; }

 private:
  using Probe = detail::LayerProbe<Single<L>, cu::CudaBackend>;

  Single<L> model_;
  ModelDescription description_;
  cu::CudaBackend::DeviceSlab memory_;
  Probe probe_;
};

void report(benchmark::State& state, char const* name, double bare_s, double layer_s) {
  state.counters[std::string(name) + "_ms"] = 1e3 * layer_s;
  state.counters[std::string(name) + "_bare_ms"] = 1e3 * bare_s;
  state.counters[std::string(name) + "_of_bare"] = bare_s / layer_s;
}

void block(benchmark::State& state, nn::TransformerConfig const& given) {
  auto const config = given.resolved();
  Bench bench;
  Probed probe(bench, nn::TransformerBlock<Ops>(config));

  auto const rows = tokens.positions();
  AttentionShape const shape{
      tokens.rows, tokens.length, config.heads, config.kv_heads, config.head_dim, DType::bf16};
  auto const scratch =
      bench.scratch(std::max(Ops::linear_scratch_bytes(), Ops::attention_scratch_bytes(shape)));
  Ops const ops(bench.stream(), scratch);
  struct Product {
    DeviceTensor y, x, weight, dweight;
  };
  std::vector<Product> products;
  auto const product = [&](std::int64_t out, std::int64_t in) {
    products.push_back({bench.take({rows, out}),
                        bench.take({rows, in}),
                        bench.take({out, in}),
                        bench.take({out, in}, DType::f32)});
  };
  product(config.query_width(), config.hidden);
  product(config.kv_width(), config.hidden);
  product(config.kv_width(), config.hidden);
  product(config.hidden, config.query_width());
  product(config.intermediate, config.hidden);
  product(config.intermediate, config.hidden);
  product(config.hidden, config.intermediate);
  auto const heads = [&](std::int64_t count) {
    return bench.take({tokens.rows, tokens.length, count, config.head_dim});
  };
  auto const q = heads(config.heads), o = heads(config.heads), d_o = heads(config.heads);
  auto const k = heads(config.kv_heads), v = heads(config.kv_heads);
  auto const dq = heads(config.heads), dk = heads(config.kv_heads), dv = heads(config.kv_heads);
  auto const lse = bench.take({tokens.rows, config.heads, tokens.length}, DType::f32);

  auto const bare_forward = [&] {
    for (auto const& p : products) {
      ops.linear(p.y, p.x, p.weight, absent);
    }
    ops.attention(o, lse, q, k, v);
  };
  auto const bare_backward = [&] {
    for (auto const& p : products) {
      ops.linear_input_gradient(p.x, p.y, p.weight, absent);
      ops.linear_weight_gradient(p.dweight, p.y, p.x);
    }
    ops.attention_backward(dq, dk, dv, d_o, q, k, v, o, lse);
  };
  for (auto _ : state) {
    auto const times = medians({[&] { return bench.seconds(bare_forward); },
                                [&] { return probe->forward(true); },
                                [&] { return bench.seconds(bare_backward); },
                                [&] { return probe->backward(); }});
    state.SetIterationTime(times[1] + times[3]);
    report(state, "forward", times[0], times[1]);
    report(state, "backward", times[2], times[3]);
  }
}

/// Copies up and down, on two streams.
class CopiesBothWays {
 public:
  static constexpr Bytes bytes = Bytes{64} << 20;  ///< Of a copy.

  explicit CopiesBothWays(Bench& bench)
      : there_(bench.backend().allocate_device(device, 2 * bytes)),
        here_(bench.backend().allocate_host(2 * bytes)),
        up_(bench.backend().make_stream(device, LaneKind::save_up)),
        down_(bench.backend().make_stream(device, LaneKind::save_down)),
        begin_(bench.backend().make_event(device)),
        end_(bench.backend().make_event(device)) {}

  /// Enqueues \p count more copies each way.
  void enqueue(std::size_t count) {
    if (count_ == 0) {
      up_.record(begin_);
    }
    for (std::size_t i = 0; i < count; ++i) {
      up_.copy(here_.bytes().subspan(0, bytes), there_.bytes().subspan(0, bytes));
      down_.copy(there_.bytes().subspan(bytes, bytes), here_.bytes().subspan(bytes, bytes));
    }
    count_ += count;
  }
  /// Waits for all of them. \returns the bytes a second both ways.
  double finish() {
    down_.record(end_);
    up_.wait(end_);
    up_.record(end_);
    end_.wait();
    auto const moved = static_cast<double>(2 * std::exchange(count_, 0) * bytes);
    return moved / end_.seconds_since(begin_);
  }

 private:
  cu::CudaBackend::DeviceSlab there_;
  cu::CudaBackend::HostSlab here_;
  cu::CudaStream up_;
  cu::CudaStream down_;
  cu::CudaEvent begin_;
  cu::CudaEvent end_;
  std::size_t count_ = 0;  // since the last time that it was finished
};

void block_beside_copies(benchmark::State& state, nn::TransformerConfig const& given) {
  Bench bench;
  Probed probe(bench, nn::TransformerBlock<Ops>(given.resolved()));
  CopiesBothWays copies(bench);
  // The mean of a forward and a backward: a device's power, and so its clock, swings for a second.
  auto const mean_seconds = [&](double seconds, std::size_t copies_each) {
    double sum_s = 0;
    std::size_t pairs = 0;
    copies.enqueue(copies_each);
    probe->enqueue_passes();
    while (sum_s < seconds) {
      copies.enqueue(copies_each);
      probe->enqueue_passes();
      auto const cost = probe->finish_passes();
      sum_s += cost.forward_s + cost.backward_s;
      ++pairs;
    }
    (void)probe->finish_passes();
    return sum_s / static_cast<double>(pairs);
  };
  for (auto _ : state) {
    auto const pair_s = mean_seconds(3, 0);
    constexpr double usual_rate = 50e9;  // each way; so copies take as long as passes
    auto const copies_each =
        static_cast<std::size_t>(pair_s * usual_rate / static_cast<double>(CopiesBothWays::bytes)) +
        1;
    std::vector<double> alone_s, beside_s, rates;
    for (int turn = 0; turn < 3; ++turn) {
      alone_s.push_back(mean_seconds(1.5, 0));
      beside_s.push_back(mean_seconds(1.5, copies_each));
      rates.push_back(copies.finish());
    }
    auto const alone = detail::median(alone_s).value();
    auto const beside = detail::median(beside_s).value();
    state.SetIterationTime(beside);
    state.counters["pair_ms"] = 1e3 * beside;
    state.counters["pair_of_alone"] = alone / beside;
    state.counters["copies_of_memory"] =
        detail::median(rates).value() /
        bench.backend().device_properties(device).memory_bytes_per_second;
  }
}

void head(benchmark::State& state, nn::TransformerConfig const& given) {
  auto const config = given.resolved();
  Bench bench;
  Probed probe(bench, nn::LanguageModelHead<Ops>(config));

  Ops const ops(bench.stream(), bench.scratch(Ops::linear_scratch_bytes()));
  auto const chunk = config.loss_chunk;
  auto const x = bench.take({chunk, config.hidden});
  auto const weight = bench.take({config.vocabulary, config.hidden});
  auto const dweight = bench.take({config.vocabulary, config.hidden}, DType::f32);
  auto const logits = bench.take({chunk, config.vocabulary}, DType::f32);
  auto const dlogits = bench.take({chunk, config.vocabulary});
  auto const bare = [&] {
    for (std::int64_t first = 0; first < tokens.positions(); first += chunk) {
      ops.linear(logits, x, weight, absent);
      ops.linear_weight_gradient(dweight, dlogits, x);
      ops.linear_input_gradient(x, dlogits, weight, absent);
    }
  };
  for (auto _ : state) {
    auto const times =
        medians({[&] { return bench.seconds(bare); }, [&] { return probe->backward(); }});
    state.SetIterationTime(times[1]);
    report(state, "training", times[0], times[1]);
  }
}

/// Element-wise operations of the 8B shape, and the bytes that each must move.
void elements(benchmark::State& state) {
  auto const config = llama_8b().resolved();
  Bench bench;
  auto const rows = tokens.positions();
  Ops const ops(bench.stream(), bench.scratch(Ops::norm_scratch_bytes(rows, config.hidden)));
  auto const x = bench.take({rows, config.hidden}), y = bench.take({rows, config.hidden});
  auto const dy = bench.take({rows, config.hidden}), dx = bench.take({rows, config.hidden});
  auto const gain = bench.take({config.hidden});
  auto const dgain = bench.take({config.hidden}, DType::f32);
  Shape const q_shape{tokens.rows, tokens.length, config.heads, config.head_dim};
  auto const q = bench.take(q_shape), rotated = bench.take(q_shape);
  Shape const wide{rows, config.intermediate};
  auto const gate = bench.take(wide), up = bench.take(wide), activation = bench.take(wide);
  auto const dgate = bench.take(wide), dup = bench.take(wide), dact = bench.take(wide);
  auto const copy = [&] {
    cu::check(::cudaMemcpyAsync(activation.device_pointer(),
                                gate.device_pointer(),
                                gate.size_bytes(),
                                ::cudaMemcpyDeviceToDevice,
                                bench.stream().get()),
              "cudaMemcpyAsync");
  };
  auto const hidden = static_cast<double>(x.size_bytes());
  auto const inner = static_cast<double>(gate.size_bytes());
  struct Operation {
    char const* name;
    double bytes;
    std::function<void()> enqueue;
  };
  std::vector<Operation> const operations{
      {"copy", 2 * inner, copy},
      {"rms_norm", 2 * hidden, [&] { ops.rms_norm(y, x, gain, 1e-5); }},
      {"rms_norm_backward",
       4 * hidden,
       [&] { ops.rms_norm_backward(dx, dgain, dy, x, gain, y, 1e-5); }},
      {"rotary", 2 * hidden, [&] { ops.rotary(rotated, q, absent, {}); }},
      {"swiglu", 3 * inner, [&] { ops.swiglu(activation, gate, up); }},
      {"swiglu_backward",
       6 * inner,
       [&] { ops.swiglu_backward(dgate, dup, activation, dact, gate, up); }},
  };
  std::vector<std::function<double()>> measurements;
  for (auto const& operation : operations) {
    measurements.push_back([&] { return bench.seconds(operation.enqueue); });
  }
  for (auto _ : state) {
    auto const times = medians(measurements);
    state.SetIterationTime(times.front());
    for (std::size_t i = 0; i < operations.size(); ++i) {
      auto const rate = operations[i].bytes / times[i];
      auto const copied = operations.front().bytes / times.front();
      state.counters[i == 0 ? "copy_GB/s" : std::string(operations[i].name) + "_of_copy"] =
          i == 0 ? 1e-9 * rate : rate / copied;
    }
  }
}

void block_8b(benchmark::State& state) {
  block(state, llama_8b());
}
void block_1_7b(benchmark::State& state) {
  block(state, qwen_1_7b());
}
void block_8b_beside_copies(benchmark::State& state) {
  block_beside_copies(state, llama_8b());
}
void block_1_7b_beside_copies(benchmark::State& state) {
  block_beside_copies(state, qwen_1_7b());
}
void head_8b(benchmark::State& state) {
  head(state, llama_8b());
}
void head_1_7b(benchmark::State& state) {
  head(state, qwen_1_7b());
}

BENCHMARK(block_8b)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(block_1_7b)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(block_8b_beside_copies)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(block_1_7b_beside_copies)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(head_8b)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(head_1_7b)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(elements)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
