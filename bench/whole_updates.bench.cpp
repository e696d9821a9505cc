// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What does it cost to update whole parameters in place of parts?
//
// A step of the same rule over the seven matrices of a transformer's layer, with bf16 gradients:
// all threads share each matrix, or each thread takes whole matrices, the largest first, whose
// gradients it widens before. Both run in turn and must leave the same weights. The time is that of
// whole matrices; `to_parts` is its ratio to the time of parts. Sizes are small unless
// ROUNDPIPE_BENCH_LARGE is set and not 0.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/concepts/optimizer.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/memory/landing_rings.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/actions/parameter_updater.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>
#include <roundpipe/runtime/state/parameter_memory.hpp>
#include <roundpipe/runtime/state/step_progress.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "support/large.hpp"

namespace {

using namespace roundpipe;

/// AdamW without the element rule, of whole parameters or of parts.
template <bool Whole>
struct Rule {
  AdamW rule{};
  [[nodiscard]] std::size_t state_arrays() const { return rule.state_arrays(); }
  [[nodiscard]] static bool updates_whole(ParameterInfo const&) { return Whole; }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    rule.update(context, weights, gradients, states);
  }
};

/// A layer's seven matrices: four of attention, three of the feed-forward part.
ParameterBlocks layer_of(std::int64_t hidden) {
  ModelDescription model;
  auto& layer = model.layers.emplace_back();
  auto const add = [&](char const* name, std::int64_t rows) {
    layer.parameters.push_back({{name, {rows, hidden}, DType::bf16}, Initial::normal(0.02F)});
  };
  for (auto const* const name : {"q", "k", "v", "o"}) {
    add(name, hidden);
  }
  for (auto const* const name : {"gate", "up", "down"}) {
    add(name, 3 * hidden);
  }
  return form_blocks(model);
}

/// Steps over one layer with gradients that stay.
template <bool Whole>
class Steps {
 public:
  Steps(std::int64_t hidden, std::size_t threads)
      : blocks_(layer_of(hidden)),
        memory_(blocks_, {.state_arrays = 2}, LandingRings(blocks_), arena_.taker()),
        progress_(blocks_),
        pool_(threads),
        updater_(memory_, progress_, Rule<Whole>{}, arena_.taker(), {}, pool_) {
    for (std::size_t t = 0; t < memory_.tensors(block); ++t) {
      auto const gradient = memory_.gradient(block, t, 1);
      std::vector<float> const values(gradient.size, 0.25F);
      narrow(values, gradient.dtype, gradient.bytes());
    }
  }

  /// \returns the seconds of the next step.
  double run() {
    using Clock = std::chrono::steady_clock;
    auto const begin = Clock::now();
    updater_.update(block, ++step_, 1);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  [[nodiscard]] std::vector<std::byte> weights() const {
    auto const bytes = memory_.master(block, step_);
    return {bytes.begin(), bytes.end()};
  }

 private:
  static constexpr BlockId block{0};

  HostBackend backend_{HostBackendOptions{}};
  HostArena<HostBackend> arena_{backend_};
  ParameterBlocks blocks_;
  ParameterMemory memory_;
  StepProgress progress_;
  WorkerPool pool_;
  ParameterUpdater<Rule<Whole>> updater_;
  std::uint64_t step_ = 0;
};

void whole_parameters(benchmark::State& state) {
  auto const hidden = bench::is_large() ? 2048 : 256;
  auto const threads = static_cast<std::size_t>(state.range(0));
  Steps<false> parts(hidden, threads);
  Steps<true> whole(hidden, threads);
  (void)parts.run();  // the first steps touch the memory
  (void)whole.run();
  double parts_s = 0;
  double whole_s = 0;
  for (auto _ : state) {
    parts_s += parts.run();
    auto const seconds = whole.run();
    whole_s += seconds;
    state.SetIterationTime(seconds);
  }
  if (parts.weights() != whole.weights()) {
    state.SkipWithError("whole parameters and parts leave different weights");
  }
  state.counters["to_parts"] = whole_s / parts_s;
}

BENCHMARK(whole_parameters)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->Arg(4)
    ->Arg(8)
    ->Arg(16)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
