// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What do snapshots cost a training? Trains with a snapshot every so many steps and, in the same
// run and taking turns, without; once with a copy of the state, once with a training that waits
// until all is written. Checks that the last snapshot loads, and holds the step that it should.
//
// Compute is a sleep, as on devices that leave the host alone; parameters, AdamW on the host, the
// copy and the files are real. `ratio` is the time of the same steps with snapshots over that
// without, each until all work is done; `held_share` is the share of the time with snapshots for
// which SnapshotWriter::save holds up the training. Per snapshot: `drain_ms` is for how long
// Pipeline::state waits for work that is under way, `held_ms` that of `save`, `copy_ms` the part of
// this that copies, and `write_ms` until all is on the disk, beside the training or in it. If a
// snapshot takes longer to write than the steps until the next one, that one waits for it, and
// `held_ms` shows it.
//
// Sizes are small unless ROUNDPIPE_BENCH_LARGE is set and not to 0. Snapshots go to TMPDIR.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/snapshots/snapshot.hpp>
#include <roundpipe/snapshots/snapshot_writer.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unistd.h>

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
  double bytes = 0;
  double count = 0;
};

void snapshots(benchmark::State& state) {
  auto const every = static_cast<std::uint64_t>(state.range(0));
  bool const copies = state.range(1) != 0;
  auto const layers = is_large() ? 16 : 4;
  TimedOptions const timed{
      is_large() ? 16_MiB : 256_KiB, 64_KiB, std::chrono::microseconds(is_large() ? 1000 : 200)};
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
    options.copy_memory = copies ? 16_GiB : 0;
    SnapshotWriter writer(folder, options);
    Costs costs;
    std::uint64_t steps = 0;
    auto const train = [&](bool saves) {
      for (std::uint64_t s = 0; s < every; ++s) {
        (void)pipeline.forward_backward(batch);
        pipeline.step();
        ++steps;
      }
      if (saves) {
        auto const drain = Clock::now();
        auto const now = pipeline.state();
        costs.drain += seconds_since(drain);
        if (auto const last = writer.last()) {
          costs.write += last->write_seconds;
        }
        auto const report = writer.save(now);
        costs.held += report.wait_seconds;
        costs.copy += report.copy_seconds;
        costs.bytes += static_cast<double>(report.copied_bytes);
        costs.count += 1;
      }
    };
    train(true);  // takes memory for the copy
    writer.wait();
    costs = {};
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
    costs.write += writer.last()->write_seconds;
    auto const per_snapshot_ms = 1e3 / costs.count;
    state.counters["ratio"] = with / without;
    state.counters["held_share"] = costs.held / with;
    state.counters["step_ms"] = 1e3 * without / (static_cast<double>(every) * costs.count);
    state.counters["drain_ms"] = costs.drain * per_snapshot_ms;
    state.counters["held_ms"] = costs.held * per_snapshot_ms;
    state.counters["copy_ms"] = costs.copy * per_snapshot_ms;
    state.counters["write_ms"] = costs.write * per_snapshot_ms;
    state.counters["copied_MB"] = costs.bytes / costs.count / 1e6;
    Snapshot const snapshot(*newest_snapshot(folder));
    if (snapshot.position().step != steps) {
      state.SkipWithError("the newest snapshot is of another step");
    }
  }
  std::filesystem::remove_all(folder);
}

BENCHMARK(snapshots)
    ->ArgNames({"every", "copies"})
    ->ArgsProduct({{10, 100}, {1, 0}})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
