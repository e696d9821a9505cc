// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <train_throughput/outcome.hpp>

#include <common/ledger_text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace train_throughput {

namespace {

using roundpipe::BubbleCause;

/// The figures that both writers give.
struct Figures {
  Figures(Options const& o, roundpipe::nn::TransformerConfig const& config, Outcome const& outcome)
      : speed(speed_of(o, config, outcome)) {
    for (auto const share : outcome.device_busy) {
      device_computing_s.push_back(share * outcome.training_s / static_cast<double>(outcome.calls));
      busy_s += share * outcome.training_s;
    }
    device_seconds = busy_s + outcome.bubbles.total();
  }

  throughput::Speed speed;
  std::vector<double> device_computing_s;  ///< By device, an iteration: a hot one takes longer.
  double busy_s = 0;                       ///< Of all devices.
  double device_seconds = 0;               ///< Busy or idle between two pieces of work.
};

double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

void print_line(std::ostream& out, std::string const& name, std::string const& value) {
  out << fmt::format("{:<26}{}\n", name, value);
}

/// The measured iterations that count.
std::span<double const> whole_periods(Outcome const& outcome) {
  auto const measured = outcome.iterations_s.size();
  auto const whole = measured - measured % outcome.period;
  return std::span(outcome.iterations_s).last(whole > 0 ? whole : measured);
}

}  // namespace

throughput::Speed speed_of(Options const& o,
                           roundpipe::nn::TransformerConfig const& config,
                           Outcome const& outcome) {
  return throughput::speed_of(
      whole_periods(outcome), config, o, o.devices * o.group.size(), outcome.peak);
}

void print_plan(std::ostream& out,
                Options const& o,
                roundpipe::nn::TransformerConfig const& config,
                Outcome const& outcome) {
  auto const line = [&](char const* name, std::string const& value) {
    print_line(out, name, value);
  };
  line("model", throughput::model_text(o, config, outcome.parameters));
  auto const ranks = o.group.size();
  line("devices",
       fmt::format("{}{} x {}",
                   ranks > 1 ? fmt::format("{} ranks of ", ranks) : "",
                   o.devices,
                   outcome.device.name));
  line("iteration",
       fmt::format("{} sequences of {} tokens: {} round(s) of {} micro-batches of {}",
                   o.batch,
                   o.context,
                   o.rounds,
                   o.micro_batches_per_round,
                   o.rows()));
  line("cut",
       outcome.automatic.empty()
           ? "pinned"
           : fmt::format("{}; in {:.1f} s: {:.1f} s measured, {:.1f} s planned",
                         outcome.automatic,
                         outcome.automatic_s,
                         outcome.measured_s,
                         outcome.planned_s));
  line("policies",
       fmt::format("{}, {} states, {}, {} transfers, {} protocol{}, {} partition",
                   o.precision,
                   o.states,
                   o.schedule,
                   o.transfers,
                   o.protocol,
                   o.sync ? ", synchronous" : "",
                   o.partition));
  out << "decisions\n";
  for (auto const& decision : outcome.decisions) {
    out << "  " << to_string(decision) << '\n';
  }
  out << examples::ledger_text(outcome.ledger);
}

void print(std::ostream& out,
           Options const& o,
           roundpipe::nn::TransformerConfig const& config,
           Outcome const& outcome) {
  Figures const f(o, config, outcome);
  auto const line = [&](std::string const& name, std::string const& value) {
    print_line(out, name, value);
  };
  line("offloaded saves",
       fmt::format("of {} of {} micro-batches, {:.1f} % of the bytes",
                   outcome.offloaded,
                   o.micro_batches_per_round,
                   100 * outcome.shares.kept_bytes));
  line("recomputed", fmt::format("{:.1f} % of the FLOPs", 100 * outcome.shares.recomputed_flops));
  for (auto const& cost : outcome.costs) {
    line(fmt::format("cost from layer {} on", cost.layer),
         fmt::format("forward {:.3f} ms, backward {:.3f} ms a micro-batch",
                     1e3 * cost.forward_s,
                     1e3 * cost.backward_s));
  }
  if (o.group.size() > 1) {
    line("network",
         fmt::format("{:.2f} GB/s from all other ranks, {:.0f} us an exchange",
                     1e-9 * outcome.network.bytes_per_second,
                     1e6 * outcome.network.latency_s));
  }
  line("set-up", fmt::format("{:.1f} s", outcome.setup_s));
  auto const counted = whole_periods(outcome).size();
  line("iteration time",
       throughput::iteration_text(f.speed, counted) +
           (outcome.period > counted
                ? fmt::format("; alike are only every {} of them", outcome.period)
                : ""));
  auto const forecast = [&](std::string const& name, std::optional<double> seconds) {
    if (seconds) {
      line(name,
           fmt::format("{:.4f} s ({:+.1f} %)",
                       *seconds,
                       percent(*seconds - f.speed.iteration_s, f.speed.iteration_s)));
    }
  };
  forecast("predicted", outcome.predicted_s);
  forecast("  from the warm-up", outcome.refitted_s);
  line("tokens/s", fmt::format("{:.0f}", f.speed.tokens_per_second));
  line("model TFLOP/s a device", throughput::flops_text(f.speed, outcome.peak));
  line("computing",
       fmt::format("{:.4f} s an iteration{}, {:.4f} by the costs",
                   fmt::join(f.device_computing_s, ", "),
                   o.devices > 1 ? ", by device" : "",
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
             "{} arena, budget {}; the driver says at most {}, {} of it context and libraries",
             roundpipe::format_bytes(outcome.device_arena_bytes),
             budget_text(o.device_memory),
             roundpipe::format_bytes(use.peak_bytes),
             roundpipe::format_bytes(use.overhead_bytes)));
  }
  line("host memory",
       fmt::format("{}, budget {}; resident set {}",
                   roundpipe::format_bytes(outcome.host_bytes),
                   budget_text(o.host_memory),
                   roundpipe::format_bytes(outcome.resident_bytes)));
  line("loss", fmt::format("{:.4f}", outcome.loss));
}

nlohmann::ordered_json to_json(Options const& o,
                               roundpipe::nn::TransformerConfig const& config,
                               Outcome const& outcome) {
  Figures const f(o, config, outcome);
  nlohmann::ordered_json json;
  json["shape"] = o.shape;
  json["layers"] = config.layers;
  json["parameters"] = outcome.parameters;
  json["device"] = outcome.device.name;
  json["upload_bytes_per_second"] = outcome.device.upload_bytes_per_second;
  json["download_bytes_per_second"] = outcome.device.download_bytes_per_second;
  json["upload_share_both_ways"] = outcome.device.upload_share_both_ways;
  json["download_share_both_ways"] = outcome.device.download_share_both_ways;
  json["host_upload_bytes_per_second"] = outcome.device.host_upload_bytes_per_second;
  json["host_download_bytes_per_second"] = outcome.device.host_download_bytes_per_second;
  json["host_bytes_per_second"] = outcome.device.host_bytes_per_second;
  json["host_download_weight"] = outcome.device.host_download_weight;
  json["host_work_bytes_per_second"] = outcome.device.host_work_bytes_per_second;
  json["upload_share_beside_work"] = outcome.device.upload_share_beside_work;
  json["download_share_beside_work"] = outcome.device.download_share_beside_work;
  json["devices"] = o.devices;
  json["context"] = o.context;
  json["ranks"] = o.group.size();
  json["batch"] = o.batch;
  json["micro_batches"] = o.micro_batches_per_round;
  json["rounds"] = o.rounds;
  json["automatic"] = outcome.automatic;
  json["automatic_s"] = outcome.automatic_s;
  json["measured_s"] = outcome.measured_s;
  json["planned_s"] = outcome.planned_s;
  for (auto const& decision : outcome.decisions) {
    json["decisions"][decision.name] = {{"value", decision.value}, {"reason", decision.reason}};
  }
  json["checkpoints"] = outcome.checkpoints_of_layers ? "layers" : "stages";
  json["overlaps_rounds"] = outcome.overlaps_rounds;
  json["offloaded_micro_batches"] = outcome.offloaded;
  json["saved_share"] = outcome.shares.kept_bytes;
  json["recomputed_flops_share"] = outcome.shares.recomputed_flops;
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
  throughput::add_speed(json, outcome.iterations_s, f.speed, outcome.peak);
  json["period"] = outcome.period;
  auto const or_null = [](std::optional<double> seconds) {
    return seconds ? nlohmann::ordered_json(*seconds) : nlohmann::ordered_json(nullptr);
  };
  if (o.group.size() > 1) {
    json["network"] = {{"bytes_per_second", outcome.network.bytes_per_second},
                       {"latency_s", outcome.network.latency_s}};
  }
  json["predicted_s"] = or_null(outcome.predicted_s);
  json["predicted_from_warm_up_s"] = or_null(outcome.refitted_s);
  json["device_computing_s"] = f.device_computing_s;
  json["busy_percent"] = percent(f.busy_s, f.device_seconds);
  for (std::size_t i = 0; i < roundpipe::bubble_cause_count; ++i) {
    auto const cause = static_cast<BubbleCause>(i);
    json["bubble_by_cause_percent"][name_of(cause)] =
        percent(outcome.bubbles[cause], f.device_seconds);
  }
  auto const budget = [](Bytes bytes) {
    return bytes > 0 ? nlohmann::ordered_json(bytes) : nlohmann::ordered_json(nullptr);
  };
  json["device_budget_bytes"] = budget(o.device_memory);
  json["device_arena_bytes"] = outcome.device_arena_bytes;
  json["device_ledger_bytes"] = outcome.device_ledger_bytes;
  for (auto const& use : outcome.device_memory) {
    json["device_memory"].push_back(
        {{"driver_bytes", use.peak_bytes}, {"overhead_bytes", use.overhead_bytes}});
  }
  json["host_budget_bytes"] = budget(o.host_memory);
  json["host_bytes"] = outcome.host_bytes;
  json["host_ledger_bytes"] = outcome.host_ledger_bytes;
  json["resident_bytes"] = outcome.resident_bytes;
  for (auto const& line : outcome.ledger) {
    bool const on_host = line.space == roundpipe::LedgerLine::Space::host;
    json["ledger"].push_back(
        {{"space", on_host ? "host" : "device"}, {"name", line.name}, {"bytes", line.bytes}});
  }
  json["loss"] = outcome.loss;
  return json;
}

}  // namespace train_throughput
