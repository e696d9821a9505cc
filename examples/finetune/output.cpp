// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "output.hpp"

#include <common/command_line.hpp>
#include <common/precision.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/json.hpp>
#include <roundpipe/snapshots/snapshot.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace finetune {

namespace rp = roundpipe;
namespace fs = std::filesystem;

rp::BatchCut given_cut(Options const& o, Job const& job) {
  rp::BatchCut cut;
  if (o.micro_batches) {
    cut.micro_batches_per_round = static_cast<std::size_t>(*o.micro_batches);
    cut.rounds = static_cast<std::size_t>(o.rounds.value_or(1));
    return cut;
  }
  cut.rounds = static_cast<std::size_t>(o.rounds.value_or(0));
  if (job.snapshot && !o.rounds) {
    auto const file = (job.snapshot->path() / "snapshot.json").string();
    auto const& note = job.snapshot->program();
    auto const number = [&](char const* name) {
      auto const found = note.find(name);
      if (found == note.end() || !found->is_number_unsigned() || *found == 0) {
        throw rp::bad_file(file, "program." + std::string(name), "is no number of this program");
      }
      return found->get<std::size_t>();
    };
    cut.micro_batches_per_round = number("micro_batches");
    // Ranks times rounds stay what they were, and so do the bits.
    auto const rounds = number("rounds");
    cut.rounds = rounds / o.group.size();
    auto const batch = static_cast<std::size_t>(o.batch);
    if (rounds % o.group.size() != 0 || batch % cut.micro_batches_per_round != 0 ||
        batch / cut.micro_batches_per_round % rounds != 0) {
      examples::refuse("--batch is " + std::to_string(o.batch) + ", which the snapshot's cut, " +
                       std::to_string(rounds) + " rounds of " +
                       std::to_string(cut.micro_batches_per_round) +
                       " micro-batches, does not divide" +
                       (o.group.size() > 1 ? " for so many ranks" : "") + "; give --micro-batches");
    }
  }
  return cut;
}

rp::DataPosition data_position(Job const& job) {
  if (!job.snapshot) {
    return job.data.position();
  }
  auto const& position = job.snapshot->data();
  if (!position) {
    throw rp::bad_file((job.snapshot->path() / "snapshot.json").string(), "data", "is missing");
  }
  return *position;
}

rp::SnapshotWriterOptions snapshot_options(Options const& o, Job const& job) {
  rp::SnapshotWriterOptions options;
  options.keep = o.keep;
  options.group = o.group;
  options.format.stores_frozen = false;  // they are in the model's folder
  options.format.tensor_name = [&names = job.names](std::string const& ours) {
    return rp::nn::is_lora_parameter(ours) ? names.peft_name(ours) : names.theirs(ours);
  };
  return options;
}

nlohmann::json snapshot_note(Outcome const& outcome, rp::PipelineOptions const& options) {
  auto note = outcome.curve.json();
  note["micro_batches"] = options.micro_batches_per_round;
  note["rounds"] = options.rounds * options.ranks;
  return note;
}

void note_plan(rp::PipelinePlan const& plan, rp::PipelineOptions const& options, Outcome& outcome) {
  outcome.micro_batches = static_cast<std::int64_t>(options.micro_batches_per_round);
  outcome.rounds = static_cast<std::int64_t>(options.rounds);
  outcome.devices = options.devices;
  outcome.state_bytes = plan.host.state_bytes;
  outcome.parameters = plan.blocks.parameter_count();
  outcome.trained_parameters = 0;
  for (auto const& block : plan.blocks.blocks) {
    for (std::size_t t = 0; !block.frozen && t < block.specs.size(); ++t) {
      outcome.trained_parameters += block.specs[t].tensor.shape.size();
    }
  }
}

void prepare_output(Job const& job) {
  std::vector<fs::path> old;
  std::error_code code;
  fs::create_directories(job.output, code);
  for (fs::directory_iterator entry(job.output, code); !code && entry != fs::directory_iterator();
       entry.increment(code)) {
    auto const name = entry->path().filename().string();
    if (name == "model.safetensors.index.json" ||
        (name.starts_with("model") && name.ends_with(".safetensors"))) {
      old.push_back(entry->path());
    }
  }
  for (auto const& path : old) {  // of this training, as the snapshot tells
    fs::remove(path, code);
  }
  if (code) {
    throw rp::file_error("make room in", job.output, code.value());
  }
  if (job.output_type) {
    auto config = rp::read_json(job.checkpoint.path() / "config.json");
    config.erase("torch_dtype");
    config["dtype"] = examples::torch_name(*job.output_type);
    rp::write_file(job.output / "config.json", rp::json_text(config, 2) + "\n");
  }
}

}  // namespace finetune
