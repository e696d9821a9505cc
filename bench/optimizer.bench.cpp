// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// How close to memory speed is an update on the CPU?
//
// The yardstick is STREAM's triad, a = b + s c in double (McCalpin 1995), over memory of the same
// size with the same threads in the same run. Triad runs with plain stores (which first read the
// lines, uncounted) and with stores past the caches; the better of the two counts. The bench
// measures the one-pass update of fp32 arrays from bf16 gradients to a bf16 master copy. Its rivals
// are the same update with the master copy written in a second pass, the same as a person writes it
// (three plain loops, not vectorized), and updates of weights and states in bf16
// (`StateType::declared`): in place, and from one master copy to another.
//
// bytes_per_second counts the bytes that the one-pass update must move, 28 a parameter (14 if all
// is bf16), for its slower rivals, too: ratios are ratios of time. `of_triad` is the ratio to the
// better triad with the same parameters and threads, over all its runs so far; there is none unless
// triad ran before. Names are NAME/parameters/threads/real_time. Triad's arrays have the size of
// one fp32 array.
//
// Sizes are small unless ROUNDPIPE_BENCH_LARGE is set and not 0: then up to 256 Mi parameters, 1
// GiB for each fp32 array, 4 GiB in all:
//
//     ROUNDPIPE_BENCH_LARGE=1 build/bench/bench.optimizer --benchmark_repetitions=7
//         --benchmark_enable_random_interleaving=true --benchmark_report_aggregates_only=true

#include <roundpipe/core/host_array.hpp>
#include <roundpipe/core/simd.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/update_pass.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#ifdef __linux__
#  include <sys/mman.h>
#endif

#include "support/large.hpp"

namespace {

using namespace roundpipe;

constexpr std::size_t grain = 4096;  // parameters: whole tiles, whole cache lines
constexpr std::size_t huge_page = std::size_t{2} << 20U;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], Free>;

/// Memory in huge pages where the system has them; no thread has touched it yet.
Memory allocate(std::size_t bytes) {
  auto const rounded = (bytes + huge_page - 1) / huge_page * huge_page;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(huge_page, rounded)));
  if (!memory) {
    throw std::bad_alloc();
  }
#ifdef __linux__
  (void)madvise(memory.get(), rounded, MADV_HUGEPAGE);
#endif
  return memory;
}

/// A parameter's initial weight and its gradient: never 0, of both signs.
float weight_of(std::size_t i) {
  return static_cast<float>(i % 1021) * 0x1p-9F - 0.9F;
}
float gradient_of(std::size_t i) {
  return static_cast<float>(i % 127) * 0x1p-8F - 0.3F;
}

/// The arrays of an update, all of one type except gradient and master copy.
class Arrays {
 public:
  Arrays(std::size_t size, DType type) : size_(size), type_(type) {
    for (std::size_t k = 0; k < 3; ++k) {
      memory_[k] = allocate(size * size_of(type));
    }
    memory_[3] = allocate(size * 2);
    memory_[4] = allocate(size * 2);
  }

  /// Weights 0, states 1 and 2, gradient 3, master copy 4.
  [[nodiscard]] HostArray array(std::size_t k) const {
    return {memory_[k].get(), size_, k < 3 ? type_ : DType::bf16};
  }

  /// Writes elements [\p begin, \p end) anew, with the values of the elements from \p index on.
  void fill(std::size_t begin, std::size_t end, std::size_t index) const {
    for (auto i = begin; i < end; i += std::min(end - i, grain)) {
      auto const count = std::min(end - i, grain);
      std::vector<float> weights(count);
      std::vector<float> gradients(count);
      for (std::size_t j = 0; j < count; ++j) {
        weights[j] = weight_of(index + i + j);
        gradients[j] = gradient_of(index + i + j);
      }
      auto const part = [&](std::size_t k) { return array(k).part(i, i + count).bytes(); };
      narrow(weights, type_, part(0));
      std::ranges::fill(part(1), std::byte{});
      std::ranges::fill(part(2), std::byte{});
      narrow(gradients, DType::bf16, part(3));
      narrow(weights, DType::bf16, part(4));
    }
  }

  /// Calls `f(arrays)` with elements [\p begin, \p end). Without a master copy, bf16 weights are
  /// their own.
  template <class F>
  void with_part(std::size_t begin, std::size_t end, bool has_master, F const& f) const {
    auto const part = [&](std::size_t k) { return array(k).part(begin, end); };
    std::array const states{part(1), part(2)};
    auto const master = has_master ? part(4) : type_ == DType::bf16 ? part(0) : HostArray{};
    f(UpdateArrays{part(0), part(3), states, master});
  }

 private:
  std::size_t size_;
  DType type_;
  std::array<Memory, 5> memory_;
};

/// The threads, and the arrays that they touched first. Kept for the next bench of the same kind.
struct Setting {
  std::size_t size;
  std::size_t threads;
  DType type;
  WorkerPool pool{threads, usable_cpus()};
  Arrays arrays{size, type};

  static Setting& of(benchmark::State const& state, DType type = DType::f32) {
    static std::unique_ptr<Setting> kept;
    auto const size = static_cast<std::size_t>(state.range(0));
    auto const threads = static_cast<std::size_t>(state.range(1));
    if (!kept || kept->size != size || kept->threads != threads || kept->type != type) {
      kept.reset();
      kept = std::make_unique<Setting>(size, threads, type);
    }
    kept->each(
        [](Arrays const& made, std::size_t begin, std::size_t end) { made.fill(begin, end, 0); });
    return *kept;
  }

  Setting(std::size_t n, std::size_t workers, DType weights)
      : size(n), threads(workers), type(weights) {}

  template <class F>
  void each(F const& f) {
    pool.for_each_part(
        size, grain, [&](std::size_t begin, std::size_t end) { f(arrays, begin, end); });
  }
};

// ----- time

/// Runs of a bench: their bytes and seconds.
struct Throughput {
  double bytes = 0;
  double seconds = 0;

  [[nodiscard]] double rate() const { return seconds > 0 ? bytes / seconds : 0; }
};

/// Measures \p iterate in all iterations of \p state, each of which moves \p bytes.
template <class F>
Throughput measure(benchmark::State& state, std::size_t bytes, F const& iterate) {
  auto const begin = std::chrono::steady_clock::now();
  for (auto _ : state) {
    iterate();
  }
  std::chrono::duration<double> const seconds = std::chrono::steady_clock::now() - begin;
  auto const all = state.iterations() * static_cast<std::int64_t>(bytes);
  state.SetBytesProcessed(all);
  return {static_cast<double>(all), seconds.count()};
}

/// All runs of triad, with plain and with streaming stores, by parameters and threads.
std::array<Throughput, 2>& triads(benchmark::State const& state) {
  static std::map<std::pair<std::int64_t, std::int64_t>, std::array<Throughput, 2>> all;
  return all[{state.range(0), state.range(1)}];
}

// ----- triad

constexpr double triad_factor = 3;

template <bool Streams>
struct TriadElements {
  double* a;
  double const* b;
  double const* c;

  template <class S>  // S::lanes floats have the size of half as many doubles
  [[gnu::always_inline]] void at(std::size_t i, std::size_t count) const {
    S::prefetch(b, i / 2);  // as in the update
    S::prefetch(c, i / 2);
    if constexpr (!Streams) {
      S::prefetch(a, i / 2);
    }
    typename S::Doubles x;
    typename S::Doubles y;
    if (count == S::lanes) {
      std::memcpy(&x, b + i / 2, sizeof x);
      std::memcpy(&y, c + i / 2, sizeof y);
      x = x + triad_factor * y;
      if constexpr (Streams) {
        auto const as_floats = reinterpret_cast<typename S::Floats>(x);
        S::stream(reinterpret_cast<float*>(a) + i, as_floats);
      } else {
        std::memcpy(a + i / 2, &x, sizeof x);
      }
    }
  }
};

template <bool Streams>
void triad(benchmark::State& state) {
  auto& setting = Setting::of(state);
  auto const doubles = [&](std::size_t k, std::size_t begin) {
    return reinterpret_cast<double*>(setting.arrays.array(k).part(begin, begin).data);
  };
  setting.each([&](Arrays const&, std::size_t begin, std::size_t end) {
    for (std::size_t i = 0; i < (end - begin) / 2; ++i) {
      doubles(0, begin)[i] = 0;
      doubles(1, begin)[i] = static_cast<double>(begin + i);
      doubles(2, begin)[i] = 2;
    }
  });
  auto const measured = measure(state, setting.size * 12, [&] {
    setting.each([&](Arrays const&, std::size_t begin, std::size_t end) {
      detail::for_each_element(
          end - begin,
          TriadElements<Streams>{doubles(0, begin), doubles(1, begin), doubles(2, begin)});
      detail::stream_fence();
    });
    benchmark::ClobberMemory();
  });
  auto& sum = triads(state)[Streams ? 1 : 0];
  sum.bytes += measured.bytes;
  sum.seconds += measured.seconds;
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < setting.size / 2; i += 1009) {
    wrong += doubles(0, 2 * i)[0] != doubles(1, 2 * i)[0] + triad_factor * 2 ? 1U : 0U;
  }
  if (wrong != 0) {
    state.SkipWithError("triad: a is not b + s c");
  }
}

// ----- updates

AdamW const adamw({.rate = LearningRate::constant(1e-4), .weight_decay = 0.1});
RandomKey const rounding{.seed = 1};

/// An update of elements [begin, end) in step `step`.
using Update = void (*)(Arrays const&, std::uint64_t step, std::size_t begin, std::size_t end);

void one_pass(Arrays const& arrays, std::uint64_t step, std::size_t begin, std::size_t end) {
  arrays.with_part(begin, end, true, [&](UpdateArrays const& part) {
    update_pass(adamw, {.step = step, .first_element = begin}, part, rounding);
  });
}

/// Writes no master copy beside the weights.
void in_place(Arrays const& arrays, std::uint64_t step, std::size_t begin, std::size_t end) {
  arrays.with_part(begin, end, false, [&](UpdateArrays const& part) {
    update_pass(adamw, {.step = step, .first_element = begin}, part, rounding);
  });
}

void two_passes(Arrays const& arrays, std::uint64_t step, std::size_t begin, std::size_t end) {
  in_place(arrays, step, begin, end);
  arrays.with_part(begin, end, true, [](UpdateArrays const& part) { copy_pass(part); });
}

/// The same update as a person writes it.
#if defined(__GNUC__) && !defined(__clang__)
[[gnu::optimize("no-tree-vectorize")]]
#endif
void plain_loops(Arrays const& arrays, std::uint64_t step, std::size_t begin, std::size_t end) {
  auto* const w = reinterpret_cast<float*>(arrays.array(0).data);
  auto* const m = reinterpret_cast<float*>(arrays.array(1).data);
  auto* const v = reinterpret_cast<float*>(arrays.array(2).data);
  auto const* const g = reinterpret_cast<BFloat16 const*>(arrays.array(3).data);
  auto* const master = reinterpret_cast<BFloat16*>(arrays.array(4).data);
  auto const& options = adamw.options();
  auto const t = static_cast<double>(step);
  auto const beta1 = static_cast<float>(options.beta1);
  auto const beta2 = static_cast<float>(options.beta2);
  auto const rate = static_cast<float>(options.rate(step));
  auto const bias1 = static_cast<float>(1 - std::pow(options.beta1, t));
  auto const bias2 = static_cast<float>(1 - std::pow(options.beta2, t));
  auto const epsilon = static_cast<float>(options.epsilon);
  auto const decay = static_cast<float>(options.weight_decay);
  for (auto i = begin; i < end; ++i) {
    m[i] = beta1 * m[i] + (1 - beta1) * g[i];
  }
  for (auto i = begin; i < end; ++i) {
    v[i] = beta2 * v[i] + (1 - beta2) * g[i] * g[i];
  }
  for (auto i = begin; i < end; ++i) {
    w[i] -= rate * ((m[i] / bias1) / (std::sqrt(v[i] / bias2) + epsilon) + decay * w[i]);
    master[i] = BFloat16(w[i]);
  }
}

/// Whether a few parts equal those of a single thread with the simplest instructions: bit for bit,
/// or to within \p tolerance.
bool is_right(Setting const& setting, std::uint64_t steps, bool has_master, float tolerance) {
  SimdLevelOverride const simplest(SimdLevel::portable);
  constexpr std::size_t count = 19;
  for (auto const at : {std::size_t{0}, setting.size / 3, setting.size - count}) {
    Arrays const expected(count, setting.type);
    expected.fill(0, count, at);
    for (std::uint64_t step = 1; step <= steps; ++step) {
      expected.with_part(0, count, has_master, [&](UpdateArrays const& part) {
        update_pass(adamw, {.step = step, .first_element = at}, part, rounding);
      });
    }
    for (std::size_t k = 0; k < 5; ++k) {
      auto const is = setting.arrays.array(k).part(at, at + count);
      auto const should = expected.array(k);
      std::array<float, count> a;
      std::array<float, count> b;
      widen(is.bytes(), is.dtype, a, false);
      widen(should.bytes(), should.dtype, b, false);
      for (std::size_t i = 0; i < count; ++i) {
        if (!(std::abs(a[i] - b[i]) <= tolerance * (1 + std::abs(b[i])))) {
          return false;
        }
      }
    }
  }
  return true;
}

void run(benchmark::State& state, DType type, Update update, float tolerance) {
  auto& setting = Setting::of(state, type);
  std::uint64_t step = 0;
  auto const measured = measure(state, setting.size * (type == DType::f32 ? 28U : 14U), [&] {
    ++step;
    setting.each([&](Arrays const& arrays, std::size_t begin, std::size_t end) {
      update(arrays, step, begin, end);
    });
  });
  if (!is_right(setting, step, update != in_place, tolerance)) {
    state.SkipWithError("the update differs from that of one thread");
  }
  auto const& [plain, streaming] = triads(state);
  auto const best = std::max(plain.rate(), streaming.rate());
  if (best > 0) {
    state.counters["of_triad"] = measured.rate() / best;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(setting.size));
}

void adamw_one_pass(benchmark::State& state) {
  run(state, DType::f32, one_pass, 0);
}
void adamw_two_passes(benchmark::State& state) {
  run(state, DType::f32, two_passes, 0);
}
void adamw_bf16(benchmark::State& state) {
  run(state, DType::bf16, in_place, 0);
}
void adamw_bf16_two_masters(benchmark::State& state) {
  run(state, DType::bf16, one_pass, 0);
}
void scalar_adamw(benchmark::State& state) {
  run(state, DType::f32, plain_loops, 0x1p-7F);
}
void triad_plain(benchmark::State& state) {
  triad<false>(state);
}
void triad_streaming(benchmark::State& state) {
  triad<true>(state);
}

/// All sizes and thread counts; the benches of one size and thread count run one after another.
void all(benchmark::internal::Benchmark* bench) {
  auto const most = usable_cpus().threads;
  std::vector<std::int64_t> sizes{std::int64_t{1} << 20, std::int64_t{4} << 20};
  if (bench::is_large()) {
    sizes = {std::int64_t{4} << 20, std::int64_t{64} << 20, std::int64_t{256} << 20};
  }
  for (auto const size : sizes) {
    for (std::size_t threads = 1; threads < most; threads *= 2) {
      bench->Args({size, static_cast<std::int64_t>(threads)});
    }
    bench->Args({size, static_cast<std::int64_t>(most)});
  }
  bench->ArgNames({"parameters", "threads"})->UseRealTime();
}

BENCHMARK(triad_plain)->Apply(all);
BENCHMARK(triad_streaming)->Apply(all);
BENCHMARK(adamw_one_pass)->Apply(all);
BENCHMARK(adamw_two_passes)->Apply(all);
BENCHMARK(scalar_adamw)->Apply(all);
BENCHMARK(adamw_bf16)->Apply(all);
BENCHMARK(adamw_bf16_two_masters)->Apply(all);

}  // namespace
