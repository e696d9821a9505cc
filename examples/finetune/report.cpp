// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "report.hpp"

#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/file_error.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <system_error>
#include <vector>

namespace finetune {

namespace {

namespace fs = std::filesystem;

std::string output_name(Job const& job) {
  auto const& path = job.output;
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

}  // namespace

void print_job(Job const& job, Options const& o) {
  fmt::print("weights     {}: {} in {} tensors, {}\n",
             o.model,
             roundpipe::format_bytes(job.checkpoint.size_bytes()),
             job.checkpoint.tensors().size(),
             job.model.model_type);
  fmt::print("data        {} rows of {} tokens to train on, {} held out; {} {} are evaluated\n",
             job.data.rows_per_epoch(),
             o.context,
             job.data.held_out_rows(),
             job.evaluated_rows,
             job.data.held_out_rows() > 0 ? "of the latter" : "of the former");
  if (job.snapshot) {
    fmt::print("resumes     {}\n", job.snapshot->path().string());
  }
}

void print_outcome(Job const& job, Outcome const& outcome) {
  auto const steps = static_cast<std::int64_t>(outcome.curve.losses.size()) - outcome.steps_before;
  if (steps > 0) {
    fmt::print("trained     {} steps in {:.1f} s, {:.0f} tokens/s{}\n",
               steps,
               outcome.seconds,
               outcome.tokens_per_second,
               outcome.mfu > 0 ? fmt::format(", MFU {:.1f} %", 100 * outcome.mfu) : "");
  }
  if (outcome.stopped) {
    fmt::print("stopped     after step {}; --resume goes on\n", outcome.curve.losses.size());
  }
  if (outcome.evaluation_loss) {
    fmt::print("evaluation  {:.4f} nats per token\n", *outcome.evaluation_loss);
  }
  fmt::print("peak        {} on a device, {} on the host\n",
             roundpipe::format_bytes(outcome.device_bytes_peak),
             roundpipe::format_bytes(outcome.host_bytes_peak));
  fmt::print("output      {}\n", job.output.string());
}

void write_curve(Job const& job, LossCurve const& curve) {
  std::error_code code;
  fs::create_directories(job.output, code);
  if (code) {
    throw roundpipe::file_error("create the folder", job.output, code.value());
  }
  roundpipe::write_file(job.output / "loss.csv", curve.csv());
  roundpipe::write_file(job.output / "loss.svg",
                        curve.svg(output_name(job) + ": loss in nats per token"));
}

void write_json(std::ostream& out, Job const& job, Options const& o, Outcome const& outcome) {
  using Json = nlohmann::ordered_json;
  Json options = {{"model", o.model},
                  {"data", o.data},
                  {"output", o.output},
                  {"resume", o.resume},
                  {"steps", job.steps},
                  {"batch", o.batch},
                  {"micro_batches", outcome.micro_batches},
                  {"rounds", outcome.rounds},
                  {"context", o.context},
                  {"packing", o.packing},
                  {"shuffle", o.shuffles},
                  {"lr", o.rate},
                  {"schedule", o.schedule},
                  {"warmup", o.warmup},
                  {"beta1", o.beta1},
                  {"beta2", o.beta2},
                  {"eps", o.epsilon},
                  {"weight_decay", o.weight_decay},
                  {"clip", o.clip},
                  {"dropout", o.dropout},
                  {"seed", o.seed},
                  {"sync", o.sync},
                  {"precision", o.precision},
                  {"master", o.master},
                  {"lora", job.model.transformer.lora.rank},
                  {"backend", o.backend},
                  {"device_memory", o.device_memory},
                  {"host_memory", o.host_memory}};
  auto const& curve = outcome.curve;
  std::vector<double> const losses(curve.losses.begin() + outcome.steps_before, curve.losses.end());
  Json evaluations = Json::array();
  for (auto const& [step, loss] : curve.evaluations) {
    evaluations.push_back({{"step", step}, {"loss", loss}});
  }
  Json const report = {
      {"options", std::move(options)},
      {"first_step", outcome.steps_before},
      {"stopped", outcome.stopped},
      {"losses", losses},
      {"evaluations", std::move(evaluations)},
      {"evaluation_loss", outcome.evaluation_loss ? Json(*outcome.evaluation_loss) : Json(nullptr)},
      {"evaluated_rows", job.evaluated_rows},
      {"training_rows", job.data.rows_per_epoch()},
      {"held_out_rows", job.data.held_out_rows()},
      {"seconds", outcome.seconds},
      {"load_seconds", outcome.load_seconds},
      {"load_bytes", job.checkpoint.size_bytes()},
      {"resident_growth", outcome.resident_growth},
      {"tokens_per_second", outcome.tokens_per_second},
      {"mfu", outcome.mfu},
      {"automatic", outcome.automatic},
      {"devices", outcome.devices},
      {"device_bytes_peak", outcome.device_bytes_peak},
      {"host_bytes_peak", outcome.host_bytes_peak},
      {"state_bytes", outcome.state_bytes},
      {"parameters", outcome.parameters},
      {"trained_parameters", outcome.trained_parameters},
      {"data_stalls", outcome.data_stalls}};
  out << report.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace finetune
