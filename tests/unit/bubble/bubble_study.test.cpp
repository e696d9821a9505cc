// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Compares schedules with the bubbles that a study reports for them.
#include <support/bubble_study.hpp>

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/partition/balanced_partition.hpp>
#include <roundpipe/schedule/gpipe_schedule.hpp>
#include <roundpipe/schedule/interleaved_schedule.hpp>
#include <roundpipe/schedule/looped_bfs_schedule.hpp>
#include <roundpipe/schedule/one_f_one_b_schedule.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/task_simulation.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace bubble_study_test {

namespace {

using namespace roundpipe;

struct Best {
  double makespan = std::numeric_limits<double>::infinity();
  double bubble_percent = 0;
  std::size_t stages = 0;
};

/// The shortest run of \p schedule over balanced partitions into any of the numbers \p stages.
template <Schedule S>
Best best_of(S const& schedule,
             test::Study const& study,
             test::StudiedModel const& model,
             std::vector<std::size_t> const& stages) {
  PartitionProblem const problem{.costs = model.costs,
                                 .devices = study.devices,
                                 .micro_batches_per_call = study.micro_batches_per_call};
  Best best;
  for (auto const count : stages) {
    auto const partition = balanced_partition(problem, count, fuses(schedule));
    auto const shape =
        test::bound_shape(count, study.devices, study.micro_batches_per_call, fuses(schedule));
    auto const run = test::run_tasks(
        shape, schedule.tasks(shape), test::times_of(model.costs, partition), model.communication);
    REQUIRE(run.complete);
    if (run.makespan < best.makespan) {
      best = {run.makespan, 100 * run.bubble(), count};
    }
  }
  return best;
}

}  // namespace

TEST_CASE("with balanced partitions, no bubble is larger than in the study") {
  auto const study = test::bubble_study();
  REQUIRE(study.models.size() == 3);
  auto const slack = 0.05;  // points
  for (auto const& [name, studied] : study.models) {
    auto const& bubbles = studied.percent;
    auto const model = test::studied_model(name);
    auto const check = [&](auto const& schedule,
                           std::string const& title,
                           std::vector<std::size_t> const& stages) {
      auto const best = best_of(schedule, study, model, stages);
      INFO(name << ", " << title << ": " << best.bubble_percent << "% (study: " << bubbles.at(title)
                << "%) with " << best.stages << " stages, " << best.makespan << " ms");
      CHECK(best.bubble_percent <= bubbles.at(title) + slack);
    };
    std::vector<std::size_t> multiples;
    for (std::size_t v = 1; v <= 8; ++v) {
      multiples.push_back(v * study.devices);
    }
    std::vector<std::size_t> any;
    for (auto count = study.devices; count <= model.costs.size(); ++count) {
      any.push_back(count);
    }
    check(GPipeSchedule{}, "GPipe", {study.devices});
    check(OneFOneBSchedule{}, "1F1B", {study.devices});
    check(InterleavedSchedule{}, "interleaved 1F1B", multiples);
    check(LoopedBfsSchedule{}, "looped BFS", any);
  }
}

TEST_CASE("round robin takes the same time as in the study with the study's partition") {
  auto const study = test::bubble_study();
  for (auto const& [name, studied] : study.models) {
    CAPTURE(name);
    auto const model = test::studied_model(name);
    ScheduleShape const shape{
        .forward_stages = studied.partition.forward.size(),
        .backward_stages = studied.partition.backward.size(),
        .devices = study.devices,
        .micro_batches_per_round = study.micro_batches_per_round,
        .rounds = study.micro_batches_per_call / study.micro_batches_per_round};
    auto const run = test::run_tasks(shape,
                                     RoundRobinSchedule{}.tasks(shape),
                                     test::times_of(model.costs, studied.partition),
                                     model.communication);
    CHECK(run.complete);
    CHECK(std::abs(run.makespan - studied.makespan) < 0.001);  // ms
    auto const percent = studied.percent.at("RoundPipe, synchronous");
    CHECK(std::abs(100 * run.bubble() - percent) < 0.01);  // points
  }
}

}  // namespace bubble_study_test
