// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A training that saves a snapshot after every step, for kill_while_saving.sh, which kills it.
//   saving_trainer reference DIGESTS STEPS        writes the digest of the weights after each step
//   saving_trainer train DIGESTS FOLDER MODE      goes on from the newest snapshot in FOLDER, saves
//                                                 there, and prints "ready STEP" when it begins;
//                                                 MODE says what is written and what waits: copied,
//                                                 live (a pipeline's state) or waiting
//   saving_trainer check DIGESTS FOLDER           loads every snapshot in FOLDER, goes on from each
//                                                 for a few steps, and prints the newest step
// Whoever goes on compares each digest with that of the uninterrupted training. The exit status is
// 2 when one differs and for any other error, and 3 when `train` has reached the last step.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/snapshots/snapshot.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>
#include <roundpipe/snapshots/snapshot_writer.hpp>
#include <support/pipeline_runs.hpp>
#include <support/snapshot_training.hpp>
#include <support/step_digests.hpp>
#include <support/toy_model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

SmallTraining small_training() {
  SmallTraining training;
  training.model.types.width = 32;
  return training;
}
auto fresh_trainer() {
  return small_trainer(small_training());
}

void write_reference(std::filesystem::path const& file, std::size_t steps) {
  auto trainer = fresh_trainer();
  StepDigests digests{weights_digest(trainer)};
  auto const after = train_steps(trainer, 0, steps);
  digests.insert(digests.end(), after.begin(), after.end());
  write_digests(file, digests);
}

/// Trains one step, whose digest must be the uninterrupted training's.
template <class Trainer>
void train_step(Trainer& trainer, StepDigests const& digests, std::uint64_t step) {
  require_digest(digests, step + 1, train_steps(trainer, step, step + 1).back());
}

/// \returns the step of \p path.
template <class Trainer>
std::uint64_t restore(Trainer& trainer,
                      StepDigests const& digests,
                      std::filesystem::path const& path) {
  Snapshot const snapshot(path);
  trainer.restore(snapshot.state());
  require_digest(digests, snapshot.position().step, weights_digest(trainer));
  return snapshot.position().step;
}

template <class Trainer>
int train(Trainer& trainer,
          StepDigests const& digests,
          std::filesystem::path const& folder,
          SnapshotMode mode) {
  std::uint64_t step = 0;
  if (auto const newest = newest_snapshot(folder)) {
    step = restore(trainer, digests, *newest);
  }
  SnapshotWriterOptions options;
  options.copy_memory = mode == SnapshotMode::copied ? 1_GiB : 0;
  SnapshotWriter writer(folder, options);
  std::printf("ready %ju\n", static_cast<std::uintmax_t>(step));
  std::fflush(stdout);
  for (; step + 1 < digests.size(); ++step) {
    train_step(trainer, digests, step);
    if (writer.save(trainer.state()).mode != mode) {
      throw std::runtime_error("saved in another mode");
    }
  }
  writer.wait();
  return 3;
}

int train(StepDigests const& digests, std::filesystem::path const& folder, std::string_view mode) {
  if (mode != "live") {
    auto trainer = fresh_trainer();
    return train(
        trainer, digests, folder, mode == "copied" ? SnapshotMode::copied : SnapshotMode::waiting);
  }
  HostBackend backend(host_devices(2));
  auto const training = small_training();
  Pipeline pipeline{
      toy_model(training.model),
      training.optimizer(),
      backend,
      PipelineOptions{.capacity = training.options.capacity,
                      .micro_batches_per_round = training.options.micro_batches_per_round,
                      .seed = training.options.seed}};
  return train(pipeline, digests, folder, SnapshotMode::live);
}

int check(StepDigests const& digests, std::filesystem::path const& folder) {
  auto trainer = fresh_trainer();
  std::uint64_t newest = 0;
  for (auto const& place : list_snapshots(folder)) {
    newest = restore(trainer, digests, place.path);
    for (auto step = newest; step < std::min<std::uint64_t>(newest + 5, digests.size() - 1);
         ++step) {
      train_step(trainer, digests, step);
    }
  }
  std::printf("%ju\n", static_cast<std::uintmax_t>(newest));
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  std::string_view const mode = argc > 3 ? argv[1] : "";
  if (mode == "reference") {
    write_reference(argv[2], std::strtoull(argv[3], nullptr, 10));
    return 0;
  }
  if (mode == "train") {
    return train(read_digests(argv[2]), argv[3], argc > 4 ? argv[4] : "copied");
  }
  if (mode == "check") {
    return check(read_digests(argv[2]), argv[3]);
  }
  std::fprintf(stderr, "usage: saving_trainer reference|train|check DIGESTS STEPS|FOLDER [MODE]\n");
  return 2;
} catch (std::exception const& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
