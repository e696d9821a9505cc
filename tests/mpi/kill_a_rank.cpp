// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief A training of several ranks that saves snapshots, for crash/kill_a_rank.sh, which kills
/// one of them:
///   kill_a_rank reference DIGESTS STEPS        writes the digest of the weights after each step of
///                                              one process, which no one interrupts
///   kill_a_rank train DIGESTS FOLDER [STEPS]   goes on from the newest snapshot in FOLDER: each
///   rank
///                                              prints "rank RANK PID STEP" when it begins. Without
///                                              STEPS it saves in FOLDER, and waits to be killed
/// A batch has 12 micro-batches, however many ranks share it, so all digests are those of one
/// process.

#include <roundpipe/mpi/mpi_group.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/runtime/weights_digest.hpp>
#include <roundpipe/snapshots/snapshot.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>
#include <roundpipe/snapshots/snapshot_writer.hpp>
#include <support/any_optimizer.hpp>
#include <support/rank_trainings.hpp>
#include <support/step_digests.hpp>
#include <support/toy_model.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mpi/programs.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <unistd.h>

namespace kill_a_rank_test {
namespace {

using namespace roundpipe;
using namespace roundpipe::test;

constexpr std::size_t micro_batches = 12;
constexpr std::uint64_t steps_per_snapshot = 4;

RankMix mix_of(std::size_t ranks) {
  RankMix mix;
  mix.ranks = ranks;
  mix.rounds = micro_batches / ranks;
  mix.clips = true;
  mix.adam = true;
  mix.drops = true;
  mix.width = 68;  // ranks share the matrix
  mix.layers = 1;
  return mix;
}

template <class Trainer>
void train_step(Trainer& trainer, std::uint64_t step) {
  ToyData const data(micro_batches, {1, 2}, 100 + step);
  trainer.forward_backward(data.batch());
  trainer.step();
}

int write_reference(std::filesystem::path const& file, std::uint64_t steps) {
  auto const mix = mix_of(1);
  SerialTrainer trainer{
      rank_model(mix), AnyOptimizer(mix.adam), serial_options(rank_options(mix), mix.staleness)};
  StepDigests digests{weights_digest(trainer)};
  for (std::uint64_t step = 0; step < steps; ++step) {
    train_step(trainer, step);
    digests.push_back(weights_digest(trainer));
  }
  write_digests(file, digests);
  return 0;
}

/// Goes on from the newest snapshot in \p folder, as a rank of \p group. \returns its step.
template <class Trainer>
std::uint64_t restore(Trainer& trainer,
                      std::filesystem::path const& folder,
                      AnyProcessGroup const& group) {
  auto const newest = newest_snapshot(folder);
  if (!newest) {
    return 0;
  }
  Snapshot const snapshot(*newest, group);
  trainer.restore(snapshot.state());
  return snapshot.position().step;
}

/// Trains \p steps steps; or to the last one, saving, until a rank is killed.
int go_on(StepDigests const& digests,
          std::filesystem::path const& folder,
          std::optional<std::uint64_t> steps) {
  MpiGroup group;
  auto const mix = mix_of(group.size());
  auto const options = rank_options(mix, group.rank());
  HostBackend backend(host_devices(options.devices));
  RankPipeline pipeline(
      rank_model(mix), AnyOptimizer(mix.adam), backend, options, rank_policies(mix, group));
  auto step = restore(pipeline, folder, group);
  require_digest(digests, step, weights_digest(pipeline));  // after it all have read the snapshot
  std::optional<SnapshotWriter> writer;
  if (!steps) {
    SnapshotWriterOptions saving;
    saving.copy_memory = step / steps_per_snapshot % 2 * 1_GiB;  // copied or live
    saving.group = group;
    writer.emplace(folder, saving);
  }
  std::printf("rank %zu %jd %ju\n",
              group.rank(),
              static_cast<std::intmax_t>(::getpid()),
              static_cast<std::uintmax_t>(step));
  std::fflush(stdout);
  auto const last = steps ? step + *steps : digests.size() - 1;
  while (step < last) {
    train_step(pipeline, step++);
    if (!steps && step % steps_per_snapshot != 0) {
      continue;  // so that the iterations overlap
    }
    require_digest(digests, step, weights_digest(pipeline));
    if (writer) {
      writer->save(pipeline.state());
    }
  }
  while (!steps) {
    group.barrier(GroupChannel::control);
  }
  return 0;
}

}  // namespace
}  // namespace kill_a_rank_test

int roundpipe::test::kill_a_rank(Arguments arguments) {
  using namespace kill_a_rank_test;
  auto const number = [&](std::size_t i) { return std::strtoull(arguments[i], nullptr, 10); };
  std::string_view const mode = arguments.size() > 2 ? arguments[0] : "";
  if (mode == "reference") {
    return write_reference(arguments[1], number(2));
  }
  if (mode == "train") {
    return go_on(read_digests(arguments[1]),
                 arguments[2],
                 arguments.size() > 3 ? std::optional(number(3)) : std::nullopt);
  }
  throw std::runtime_error("usage: kill_a_rank reference|train DIGESTS STEPS|FOLDER [STEPS]");
}
