// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How much transfer time stays exposed beside compute, on any backend.

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "timed_layer.hpp"

namespace roundpipe::bench {

/// The parts of a backend that the bench needs besides its concept; specialized for each backend:
///   Busy                      keeps a stream busy, see \ref TimedLayer
///   load_name                 the name of the first argument, how hard transfers are
///   devices()                 how many to use
///   options(devices, load)    of the backend
///   timed(load)               of the layers
///   Stages                    cuts the layers into stages
template <Backend B>
struct Bench;

/// An iteration in the steady state of training.
struct Iteration {
  double seconds = 0;    ///< 0: the loss was wrong.
  double busy = 0;       ///< The share of the iteration in which a device computes.
  double transfer = 0;   ///< The share in which it waits for copies, or for their destination.
  double optimizer = 0;  ///< The share in which it waits for the host's work.
};

/// Of 7 layers.
template <class B, TransferPolicy T>
Iteration run_iterations(std::int64_t load, std::size_t micro_batches) {
  using Clock = std::chrono::steady_clock;
  constexpr int warm_up = 2;
  constexpr int measured = 5;
  auto const devices = Bench<B>::devices();
  B backend{Bench<B>::options(devices, load)};
  PipelineOptions options;
  options.micro_batches_per_round = micro_batches;
  Pipeline pipeline{timed_model<typename Bench<B>::Busy>(Bench<B>::timed(load), 6),
                    Sgd{},
                    backend,
                    options,
                    Policies{.transfers = T{}, .partitioner = typename Bench<B>::Stages{}}};
  Batch const batch(micro_batches, {1, 1});
  std::vector<double> times;
  auto start = Clock::now();
  for (int i = 0; i < warm_up + measured; ++i) {
    if (i == warm_up) {
      (void)pipeline.restart_report();
    }
    auto const loss = pipeline.forward_backward(batch);
    pipeline.step();
    if (loss != static_cast<double>(micro_batches)) {  // one from each
      return {};
    }
    if (i >= warm_up) {
      times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
    start = Clock::now();
  }
  auto const report = pipeline.report();
  auto const device_s = report.training_s * static_cast<double>(devices);
  Iteration found;
  std::nth_element(times.begin(), times.begin() + measured / 2, times.end());
  found.seconds = times[measured / 2];
  for (auto const share : report.device_busy) {
    found.busy += share / static_cast<double>(devices);
  }
  found.transfer =
      (report.bubbles[BubbleCause::transfer_stall] + report.bubbles[BubbleCause::memory_stall]) /
      device_s;
  found.optimizer = report.bubbles[BubbleCause::optimizer_stall] / device_s;
  return found;
}

/// Idle is the share of an iteration in which a device does not compute.
template <class B, TransferPolicy T>
void iteration(benchmark::State& state) {
  auto const micro_batches = static_cast<std::size_t>(state.range(1));
  Iteration found;
  double seconds = 0;
  for (auto _ : state) {
    found = run_iterations<B, T>(state.range(0), micro_batches);
    if (found.seconds == 0) {
      state.SkipWithError("the loss is wrong");
      return;
    }
    state.SetIterationTime(found.seconds);
    seconds += found.seconds;
  }
  state.counters["idle"] = 1 - found.busy;
  state.counters["transfer_stall"] = found.transfer;
  state.counters["optimizer_stall"] = found.optimizer;
  state.counters["micro_batches_per_s"] =
      static_cast<double>(micro_batches) * static_cast<double>(state.iterations()) / seconds;
}

/// Runs \p bench over \p loads and some numbers of micro-batches.
template <class B>
void over_loads(benchmark::internal::Benchmark* bench, std::vector<std::int64_t> const& loads) {
  bench->ArgNames({Bench<B>::load_name, "micro_batches"})
      ->ArgsProduct({loads, {2, 4, 8}})
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace roundpipe::bench
