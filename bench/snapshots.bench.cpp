// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What do snapshots cost a training? Trains with a snapshot every so many steps and, in the same
// run and taking turns, without; with a copy of the state (mode 0), block by block beside the
// training (mode 1), through a buffer of `buffer` percent of the state or of the least bytes, and
// with a training that waits until all is written (mode 2). Checks that the last snapshot loads,
// and holds the step that it should.
//
// Compute is a sleep, as on devices that leave the host alone; parameters, AdamW on the host, the
// copy and the files are real. `ratio` is the time of the same steps with snapshots over that
// without, each until all work is done. Per snapshot: `drain_ms` is for how long Pipeline::state
// waits for work that is under way, `held_ms` that of `save`, `copy_ms` the part of this that
// copies, `write_ms` until all is on the disk, beside the training or in it, and `update_ms` for
// how long updates waited for blocks. `slower_ms` is by how much longer steps took while a snapshot
// was written beside them than the median step without snapshots: by waiting, and because the
// thread that writes takes CPU time and memory bandwidth. `lost_share` is the share of `held_ms`
// and `slower_ms` in the time with snapshots. If a snapshot takes longer to write than the steps
// until the next one, that one waits for it, and `held_ms` shows it.
//
// With `layer_ms` 1 a step is as long as the optimizer's work; with 4, several times that.
//
// Sizes and periods are small unless ROUNDPIPE_BENCH_LARGE is set and not to 0. Snapshots go to
// TMPDIR.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/snapshots/snapshot.hpp>
#include <roundpipe/snapshots/snapshot_writer.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "support/busy_host.hpp"
#include "support/large.hpp"
#include "support/timed_layer.hpp"

namespace {

using namespace roundpipe;
using namespace roundpipe::bench;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The seconds of some snapshots.
struct Costs {
  double drain = 0;
  double held = 0;
  double copy = 0;
  double write = 0;
  double update = 0;
  double slower = 0;
  double count = 0;
};

void snapshots(benchmark::State& state) {
  auto const every = is_large() ? static_cast<std::uint64_t>(state.range(0)) : 10;
  auto const mode = static_cast<SnapshotMode>(state.range(1));
  auto const layers = is_large() ? 16 : 4;
  TimedOptions const timed{is_large() ? 16_MiB : 256_KiB,
                           64_KiB,
                           std::chrono::microseconds((is_large() ? 1000 : 200) * state.range(2))};
  auto const folder =
      std::filesystem::temp_directory_path() / ("roundpipe_bench_" + std::to_string(::getpid()));
  {
    HostBackendOptions machine;
    machine.devices = 2;
    HostBackend backend(machine);
    Pipeline pipeline{timed_model<Busy>(timed, static_cast<std::size_t>(layers)),
                      AdamW{},
                      backend,
                      PipelineOptions{.micro_batches_per_round = 4}};
    Batch const batch(4, {1, 1});
    SnapshotWriterOptions options;
    options.keep = 1;
    Bytes const values = 4;  // of each parameter: AdamW's, and older weights
    options.copy_memory = mode == SnapshotMode::copied
                              ? 16_GiB
                              : values * static_cast<Bytes>(layers) * timed.parameter_bytes *
                                    static_cast<Bytes>(state.range(3)) / 100;
    SnapshotWriter writer(folder, options);
    Costs costs;
    std::vector<double> undisturbed;  // the seconds of steps without snapshots
    std::vector<double> disturbed;    // of those beside which one is written
    std::uint64_t steps = 0;
    auto const add_written = [&] {
      if (auto const last = writer.last()) {
        costs.write += last->write_seconds;
        costs.update += last->update_wait_seconds;
      }
    };
    auto const train = [&](bool saves) {
      for (std::uint64_t s = 0; s < every; ++s) {
        auto const begin = Clock::now();
        (void)pipeline.forward_backward(batch);
        pipeline.step();
        ++steps;
        if (bool const is_busy = writer.is_busy(); is_busy || !saves) {
          (is_busy ? disturbed : undisturbed).push_back(seconds_since(begin));
        }
      }
      if (saves) {
        auto const drain = Clock::now();
        auto const now = pipeline.state();
        costs.drain += seconds_since(drain);
        add_written();
        auto const begin = Clock::now();
        auto const report = writer.save(now);
        if (mode == SnapshotMode::waiting) {
          writer.wait();
        }
        costs.held += seconds_since(begin);
        costs.copy += report.copy_seconds;
        costs.count += 1;
      }
    };
    train(true);  // takes memory for the copy
    writer.wait();
    costs = {};
    disturbed.clear();
    // What a snapshot costs while it is written falls into the second of two periods.
    auto const seconds_of_two = [&](bool saves) {
      auto const begin = Clock::now();
      train(saves);
      train(saves);
      (void)pipeline.report();  // waits for what is under way
      return seconds_since(begin);
    };
    double with = 0;
    double without = 0;
    for (auto _ : state) {
      without += seconds_of_two(false);
      auto const seconds = seconds_of_two(true);
      with += seconds;
      state.SetIterationTime(seconds);
      writer.wait();
    }
    add_written();
    std::ranges::nth_element(undisturbed, undisturbed.begin() + undisturbed.size() / 2);
    auto const step = undisturbed[undisturbed.size() / 2];
    for (auto const seconds : disturbed) {
      costs.slower += seconds - step;
    }
    auto const per_snapshot_ms = 1e3 / costs.count;
    state.counters["ratio"] = with / without;
    state.counters["lost_share"] = (costs.held + costs.slower) / with;
    state.counters["step_ms"] = 1e3 * step;
    state.counters["drain_ms"] = costs.drain * per_snapshot_ms;
    state.counters["held_ms"] = costs.held * per_snapshot_ms;
    state.counters["copy_ms"] = costs.copy * per_snapshot_ms;
    state.counters["write_ms"] = costs.write * per_snapshot_ms;
    state.counters["update_ms"] = costs.update * per_snapshot_ms;
    state.counters["slower_ms"] = costs.slower * per_snapshot_ms;
    state.counters["state_MB"] = static_cast<double>(writer.last()->state_bytes) / 1e6;
    state.counters["buffer_MB"] = static_cast<double>(writer.last()->buffer_bytes) / 1e6;
    Snapshot const snapshot(*newest_snapshot(folder));
    if (snapshot.position().step != steps) {
      state.SkipWithError("the newest snapshot is of another step");
    }
  }
  std::filesystem::remove_all(folder);
}

BENCHMARK(snapshots)
    ->ArgNames({"every", "mode", "layer_ms", "buffer"})
    ->ArgsProduct({{10, 100}, {0, 1, 2}, {1}, {0}})
    ->ArgsProduct({{10, 100}, {1}, {1}, {50}})
    ->ArgsProduct({{10, 100}, {1, 2}, {4}, {0}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
