// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "outcome.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>

namespace train_throughput {

namespace {

using roundpipe::BubbleCause;

/// The figures that both writers give.
struct Figures {
  Figures(Options const& o,
          roundpipe::nn::TransformerConfig const& config,
          Outcome const& outcome) {
    auto sorted = outcome.iterations_s;
    std::ranges::sort(sorted);
    iteration_s = outcome.window_s / static_cast<double>(sorted.size());
    median_s = sorted[sorted.size() / 2];
    tokens_per_second = static_cast<double>(o.batch * o.context) / iteration_s;
    device_flops = model_flops(config, o) / iteration_s / static_cast<double>(o.devices);
    mfu = outcome.peak_flops > 0 ? device_flops / outcome.peak_flops : 0;
    for (auto const share : outcome.device_busy) {
      busy_s += share * outcome.training_s;
    }
    device_seconds = busy_s + outcome.bubbles.total();
  }

  double iteration_s = 0;  ///< The window over its iterations.
  double median_s = 0;
  double tokens_per_second = 0;
  double device_flops = 0;
  double mfu = 0;
  double busy_s = 0;          ///< Of all devices.
  double device_seconds = 0;  ///< Busy or idle between two pieces of work.
};

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

}  // namespace

double model_flops(roundpipe::nn::TransformerConfig const& config, Options const& o) {
  auto const number = [](std::int64_t n) { return static_cast<double>(n); };
  auto const block =
      number(config.hidden) *
      number(2 * config.query_width() + 2 * config.kv_width() + 3 * config.intermediate);
  auto const weights =
      number(config.layers) * block + number(config.hidden) * number(config.vocabulary);
  auto const tokens = number(o.batch) * number(o.context);
  auto const attention =
      6 * number(config.layers) * number(config.query_width()) * number(o.context) * tokens;
  return 6 * weights * tokens + attention;
}

void print(std::ostream& out,
           Options const& o,
           roundpipe::nn::TransformerConfig const& config,
           Outcome const& outcome) {
  Figures const f(o, config, outcome);
  auto const line = [&](std::string const& name, std::string const& value) {
    out << fmt::format("{:<26}{}\n", name, value);
  };
  line("model",
       fmt::format("{}, {} blocks, {:.2f}e9 parameters",
                   o.shape,
                   config.layers,
                   1e-9 * static_cast<double>(outcome.parameters)));
  line("devices", fmt::format("{} x {}", o.devices, outcome.device));
  line("iteration",
       fmt::format("{} sequences of {} tokens: {} round(s) of {} micro-batches of {}",
                   o.batch,
                   o.context,
                   o.rounds,
                   o.micro_batches_per_round,
                   o.rows()));
  if (!outcome.automatic.empty()) {
    line("chosen", fmt::format("{}; in {:.1f} s", outcome.automatic, outcome.automatic_s));
  }
  line("policies",
       fmt::format("{}, {} states, {}, {} transfers, {} protocol{}, {} partition",
                   o.precision,
                   o.states,
                   o.schedule,
                   o.transfers,
                   o.protocol,
                   o.sync ? ", synchronous" : "",
                   o.partition));
  line("stages",
       fmt::format("forward {}, backward {} (layers)",
                   fmt::join(outcome.forward_stages, " "),
                   fmt::join(outcome.backward_stages, " ")));
  line("checkpoints", outcome.checkpoints_of_layers ? "behind every layer" : "between stages");
  line("offloaded saves",
       fmt::format("of {} of {} micro-batches", outcome.offloaded, o.micro_batches_per_round));
  for (auto const& cost : outcome.costs) {
    line(fmt::format("cost from layer {} on", cost.layer),
         fmt::format("forward {:.3f} ms, backward {:.3f} ms a micro-batch",
                     1e3 * cost.forward_s,
                     1e3 * cost.backward_s));
  }
  line("set-up", fmt::format("{:.1f} s", outcome.setup_s));
  line("iteration time",
       fmt::format("{:.4f} s (median {:.4f}, {} measured)",
                   f.iteration_s,
                   f.median_s,
                   outcome.iterations_s.size()));
  auto const forecast = [&](std::string const& name, std::optional<double> seconds) {
    if (seconds) {
      line(name,
           fmt::format(
               "{:.4f} s ({:+.1f} %)", *seconds, percent(*seconds - f.iteration_s, f.iteration_s)));
    }
  };
  forecast("predicted", outcome.predicted_s);
  forecast("  from the warm-up", outcome.refitted_s);
  line("tokens/s", fmt::format("{:.0f}", f.tokens_per_second));
  line("model TFLOP/s a device",
       fmt::format("{:.1f}, MFU {:.1f} % of {:.0f} ({})",
                   1e-12 * f.device_flops,
                   100 * f.mfu,
                   1e-12 * outcome.peak_flops,
                   outcome.peak_source));
  line("computing",
       fmt::format("{:.4f} s an iteration and device, {:.4f} by the costs",
                   f.busy_s / static_cast<double>(outcome.calls * o.devices),
                   outcome.computing_s));
  line("busy", fmt::format("{:.2f} %", percent(f.busy_s, f.device_seconds)));
  for (std::size_t i = 0; i < roundpipe::bubble_cause_count; ++i) {
    auto const cause = static_cast<BubbleCause>(i);
    line(fmt::format("  {}", name_of(cause)),
         fmt::format("{:.2f} %", percent(outcome.bubbles[cause], f.device_seconds)));
  }
  for (std::size_t d = 0; d < outcome.device_memory.size(); ++d) {
    auto const& use = outcome.device_memory[d];
    line(fmt::format("device {} memory", d),
         fmt::format(
             "{} arena of a budget of {}; the driver says {}, {} of it context and libraries",
             roundpipe::format_bytes(outcome.device_arena_bytes),
             roundpipe::format_bytes(o.device_memory),
             roundpipe::format_bytes(use.used_bytes),
             roundpipe::format_bytes(use.overhead_bytes)));
  }
  line("host memory", roundpipe::format_bytes(outcome.host_bytes));
  line("loss", fmt::format("{:.4f}", outcome.loss));
}

void write_json(std::ostream& out,
                Options const& o,
                roundpipe::nn::TransformerConfig const& config,
                Outcome const& outcome) {
  Figures const f(o, config, outcome);
  nlohmann::ordered_json json;
  json["shape"] = o.shape;
  json["layers"] = config.layers;
  json["parameters"] = outcome.parameters;
  json["device"] = outcome.device;
  json["devices"] = o.devices;
  json["context"] = o.context;
  json["batch"] = o.batch;
  json["micro_batches"] = o.micro_batches_per_round;
  json["rounds"] = o.rounds;
  json["automatic"] = outcome.automatic;
  json["checkpoints"] = outcome.checkpoints_of_layers ? "layers" : "stages";
  json["offloaded_micro_batches"] = outcome.offloaded;
  json["warmup"] = o.warmup;
  json["loss_chunk"] = o.loss_chunk;
  json["precision"] = o.precision;
  json["states"] = o.states;
  json["synchronous"] = o.sync;
  json["schedule"] = o.schedule;
  json["protocol"] = o.protocol;
  json["transfers"] = o.transfers;
  json["partition"] = o.partition;
  json["forward_stages"] = outcome.forward_stages;
  json["backward_stages"] = outcome.backward_stages;
  for (auto const& cost : outcome.costs) {
    json["costs"].push_back({{"first_layer", cost.layer},
                             {"forward_ms", 1e3 * cost.forward_s},
                             {"backward_ms", 1e3 * cost.backward_s}});
  }
  json["t_max_ms"] = 1e3 * outcome.t_max_s;
  json["setup_s"] = outcome.setup_s;
  json["iterations_s"] = outcome.iterations_s;
  json["iteration_s"] = f.iteration_s;
  auto const or_null = [](std::optional<double> seconds) {
    return seconds ? nlohmann::ordered_json(*seconds) : nlohmann::ordered_json(nullptr);
  };
  json["predicted_s"] = or_null(outcome.predicted_s);
  json["predicted_from_warm_up_s"] = or_null(outcome.refitted_s);
  json["tokens_per_second"] = f.tokens_per_second;
  json["model_tflops_per_device"] = 1e-12 * f.device_flops;
  json["peak_tflops"] = 1e-12 * outcome.peak_flops;
  json["peak_source"] = outcome.peak_source;
  json["mfu"] = f.mfu;
  json["busy_percent"] = percent(f.busy_s, f.device_seconds);
  for (std::size_t i = 0; i < roundpipe::bubble_cause_count; ++i) {
    auto const cause = static_cast<BubbleCause>(i);
    json["bubble_by_cause_percent"][name_of(cause)] =
        percent(outcome.bubbles[cause], f.device_seconds);
  }
  json["device_budget_bytes"] = o.device_memory;
  json["device_arena_bytes"] = outcome.device_arena_bytes;
  for (auto const& use : outcome.device_memory) {
    json["device_memory"].push_back(
        {{"driver_bytes", use.used_bytes}, {"overhead_bytes", use.overhead_bytes}});
  }
  json["host_bytes"] = outcome.host_bytes;
  for (auto const& line : outcome.ledger) {
    bool const on_host = line.space == roundpipe::LedgerLine::Space::host;
    json["ledger"].push_back(
        {{"space", on_host ? "host" : "device"}, {"name", line.name}, {"bytes", line.bytes}});
  }
  json["loss"] = outcome.loss;
  out << json.dump(2) << '\n';
}

}  // namespace train_throughput
