// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a training leaves in its folder, and finds there again.

#include <roundpipe/architectures/adapter_weights.hpp>
#include <roundpipe/architectures/checkpoint_weights.hpp>
#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/data/dataset.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/runtime/automatic.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/snapshot_writer.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "job.hpp"
#include "options.hpp"
#include "report.hpp"

namespace finetune {

/// The cut of the batch that the command line says, or the snapshot. A 0 leaves a part open.
/// \throws roundpipe::Error (invalid_argument) when the snapshot's cut does not divide the batch.
[[nodiscard]] roundpipe::BatchCut given_cut(Options const& o, Job const& job);

/// Where the training stands in its data.
/// \throws roundpipe::Error (bad_file) for a snapshot without that.
[[nodiscard]] roundpipe::DataPosition data_position(Job const& job);

/// How snapshots are written.
[[nodiscard]] roundpipe::SnapshotWriterOptions snapshot_options(Options const& o, Job const& job);
/// What a snapshot tells the process that goes on from it.
[[nodiscard]] nlohmann::json snapshot_note(Outcome const& outcome,
                                           roundpipe::PipelineOptions const& options);

/// Notes what a plan says, in \p outcome.
void note_plan(roundpipe::PipelinePlan const& plan,
               roundpipe::PipelineOptions const& options,
               Outcome& outcome);

/// Makes room for new weights in the output folder, and writes its config.json if that shall differ
/// from the model's.
void prepare_output(Job const& job);

/// A trainer of several ranks as rank 0 reads it, alone: each has a part of the weights, so the
/// others take part (\ref follow) in what rank 0 asks for, until it has finished.
template <class Trainer>
class RankZeroReads {
 public:
  RankZeroReads(Trainer& trainer, roundpipe::AnyProcessGroup group)
      : trainer_(trainer), group_(std::move(group)) {}

  /// As those of a trainer.
  [[nodiscard]] roundpipe::TrainingState state() { return trainer_.state(); }
  template <class F>
  void for_each_parameter(F&& f) {
    tell(all);
    trainer_.for_each_parameter(std::forward<F>(f));
  }
  void read_parameter(std::string const& name, roundpipe::HostSpan<float> values) {
    auto const state = trainer_.state();
    auto const found = std::ranges::find(state.parameters, name, &roundpipe::ParameterState::name);
    tell(static_cast<std::uint64_t>(found - state.parameters.begin()));
    trainer_.read_parameter(name, values);
  }

  /// Rank 0 reads no more.
  void finish() { tell(end); }

  /// What the other ranks do until rank 0 has called \ref finish. \throws as the group does.
  void follow() {
    while (true) {
      auto const asked = tell(end);
      if (asked == end) {
        return;
      }
      if (asked == all) {
        trainer_.for_each_parameter([](auto const&...) {});
      } else {
        auto const state = trainer_.state();
        auto const& parameter = state.parameters[asked];
        std::vector<float> values(parameter.weights.shape.size());
        trainer_.read_parameter(parameter.name, values);
      }
    }
  }

 private:
  // What is asked for: a parameter by its number, or
  static constexpr std::uint64_t all = ~std::uint64_t{0};
  static constexpr std::uint64_t end = all - 1;

  /// \returns what rank 0 asks for.
  std::uint64_t tell(std::uint64_t asked) {
    group_.broadcast(
        roundpipe::GroupChannel::control, 0, std::as_writable_bytes(std::span(&asked, 1)));
    return asked;
  }

  Trainer& trainer_;
  roundpipe::AnyProcessGroup group_;
};

/// Writes the weights of \p trained, or its adapters, and carries all other files of the model's
/// folder.
template <class Trained>
void write_output(Trained& trained, Options const& o, Job const& job, roundpipe::WorkerPool& pool) {
  prepare_output(job);
  if (o.has_adapters() && !o.merge) {
    roundpipe::save_adapter(trained, job.names, job.output, {.base_model = o.model}, pool);
    auto const& source = job.checkpoint.path();
    roundpipe::copy_files(source, job.output, roundpipe::files_beside_weights(source));
    return;
  }
  roundpipe::save_weights(
      trained, job.names, job.output, {.type = job.output_type, .source = &job.checkpoint}, pool);
}

/// Writes what was trained; an operation of all ranks. Afterwards \p trainer has the weights as
/// they were written, which may be rounded.
template <class Trainer>
void write_weights(Trainer& trainer,
                   Options const& o,
                   Job const& job,
                   roundpipe::WorkerPool& pool) {
  auto group = o.group;
  if (group.size() == 1) {
    write_output(trainer, o, job, pool);
  } else {
    RankZeroReads trained(trainer, group);
    if (group.rank() == 0) {
      write_output(trained, o, job, pool);
      trained.finish();
    } else {
      trained.follow();
    }
  }
  if (job.narrows_weights()) {
    roundpipe::CheckpointFolder const written(job.output);
    roundpipe::load_weights(trainer, job.names, written, pool);
  }
}

}  // namespace finetune
