// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "report.hpp"

#include <common/plan_text.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/trace/chrome_trace.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <exception>
#include <ostream>
#include <string>
#include <utility>

#include "sampling.hpp"

namespace train_text {

namespace {

/// Prints the sample, each line behind a bar.
void print_sample(Outcome const& outcome) {
  auto const print_quoted = [](std::string const& text) {
    std::string lines = "  | ";
    for (auto const c : printable(text)) {
      lines += c == '\n' ? std::string("\n  | ") : std::string(1, c);
    }
    fmt::print("{}\n", lines);
  };
  fmt::print("sample      held-out text:\n");
  print_quoted(outcome.prompt);
  fmt::print("            as the model goes on:\n");
  print_quoted(outcome.continuation);
}

}  // namespace

void print_text(Outcome const& outcome, Options const& o) {
  fmt::print("text        {} {}: {} to train on, {} held out\n",
             outcome.files,
             o.data.empty() ? "of the project's own files" : "files",
             roundpipe::format_bytes(outcome.training_bytes),
             roundpipe::format_bytes(outcome.held_out_bytes));
}

void print_outcome(Outcome const& outcome) {
  fmt::print("trained     {} steps in {:.1f} s, {:.0f} tokens/s\n",
             outcome.losses.size(),
             outcome.seconds,
             outcome.tokens_per_second);
  auto const gain = outcome.bigram - outcome.validation;
  fmt::print(
      "validation  {:.4f} nats per byte, on {} held-out bytes\n"
      "            {:.4f} unigram entropy of the training text\n"
      "            {:.4f} its bigram entropy; the model is {:.4f} {}\n",
      outcome.validation,
      outcome.validated_bytes,
      outcome.unigram,
      outcome.bigram,
      gain < 0 ? -gain : gain,
      gain > 0 ? "below" : "above");
  for (std::size_t device = 0; device < outcome.device_busy.size(); ++device) {
    auto const busy = 100 * outcome.device_busy[device];
    fmt::print("{:<11} {}: {:4.1f} % busy, {:4.1f} % idle\n",
               device == 0 ? "devices" : "",
               device,
               busy,
               100 - busy);
  }
  if (outcome.predicted_iteration_s > 0 && outcome.iteration_s > 0) {
    fmt::print("iteration   {:.2f} ms measured, {:.2f} ms by simulation ({:+.1f} %)\n",
               1e3 * outcome.iteration_s,
               1e3 * outcome.predicted_iteration_s,
               100 * (outcome.predicted_iteration_s / outcome.iteration_s - 1));
  }
  if (!outcome.device_busy.empty()) {
    fmt::print("peak        {} on a device, {} on the host\n",
               roundpipe::format_bytes(outcome.device_bytes_peak),
               roundpipe::format_bytes(outcome.host_bytes_peak));
  }
  fmt::print("weights     digest {:016x}\n", outcome.weights_digest);
  print_sample(outcome);
}

void print_files(Options const& o) {
  if (!o.json.empty()) {
    fmt::print("report      {}\n", o.json);
  }
  if (!o.trace.empty()) {
    fmt::print("trace       {} (open it with ui.perfetto.dev or chrome://tracing)\n", o.trace);
  }
}

void write_trace(std::ostream& out, roundpipe::Timeline const& timeline) {
  roundpipe::write_chrome_trace(timeline, out);
}

void write_json(std::ostream& out, Options const& o, Outcome const& outcome) {
  using Json = nlohmann::ordered_json;
  auto const scale = loss_scale(o);
  Json first_scale = scale ? Json(scale->initial) : Json(nullptr);
  Json options = {{"data", o.data},
                  {"layers", o.layers},
                  {"hidden", o.hidden},
                  {"heads", o.heads},
                  {"kv_heads", o.kv_heads},
                  {"context", o.context},
                  {"tied", o.tied},
                  {"precision", o.precision},
                  {"master", o.master},
                  {"batch", o.batch},
                  {"micro_batches", o.micro_batches_per_round},
                  {"rounds", o.rounds},
                  {"steps", o.steps},
                  {"seconds", o.seconds},
                  {"optimizer", o.optimizer},
                  {"lr", o.highest_rate()},
                  {"dropout", o.dropout},
                  {"clip", o.clip},
                  {"loss_scale", std::move(first_scale)},
                  {"seed", o.seed},
                  {"sync", o.sync},
                  {"serial", o.serial},
                  {"backend", o.backend},
                  {"devices", o.devices},
                  {"device_memory", o.device_memory},
                  {"link_gbps", o.link_gbps},
                  {"gradient_buffers", o.gradient_buffers},
                  {"optimizer_threads", o.optimizer_threads}};
  Json idle = Json::array();
  for (auto const busy : outcome.device_busy) {
    idle.push_back(1 - busy);
  }
  Json ledger = Json::array();
  for (auto const& line : outcome.ledger) {
    auto const on_device = line.space == roundpipe::LedgerLine::Space::device;
    ledger.push_back(
        {{"space", on_device ? "device" : "host"}, {"name", line.name}, {"bytes", line.bytes}});
  }
  Json const report = {{"options", std::move(options)},
                       {"files", outcome.files},
                       {"training_bytes", outcome.training_bytes},
                       {"held_out_bytes", outcome.held_out_bytes},
                       {"validation_nats_per_byte", outcome.validation},
                       {"unigram_nats_per_byte", outcome.unigram},
                       {"bigram_nats_per_byte", outcome.bigram},
                       {"steps", outcome.losses.size()},
                       {"seconds", outcome.seconds},
                       {"cpu_seconds", outcome.cpu_seconds},
                       {"tokens_per_second", outcome.tokens_per_second},
                       {"iteration_s", outcome.iteration_s},
                       {"predicted_iteration_s", outcome.predicted_iteration_s},
                       {"automatic", outcome.automatic},
                       {"losses", outcome.losses},
                       {"weights_digest", fmt::format("{:016x}", outcome.weights_digest)},
                       {"forward_stages", outcome.forward_stages},
                       {"backward_stages", outcome.backward_stages},
                       {"devices", outcome.device_busy.size()},
                       {"device_busy", outcome.device_busy},
                       {"device_idle", std::move(idle)},
                       {"device_bytes_peak", outcome.device_bytes_peak},
                       {"host_bytes_peak", outcome.host_bytes_peak},
                       {"parameters", outcome.parameters},
                       {"state_bytes", outcome.state_bytes},
                       {"state_bytes_per_parameter",
                        examples::bytes_per_parameter(outcome.state_bytes, outcome.parameters)},
                       {"ledger", std::move(ledger)},
                       {"prompt", outcome.prompt},
                       {"continuation", outcome.continuation}};
  out << report.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

}  // namespace train_text
