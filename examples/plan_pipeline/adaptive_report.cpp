// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "adaptive_report.hpp"

#include <common/ledger_text.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/runtime/explain.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/trace/svg_canvas.hpp>
#include <roundpipe/trace/time_axis.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "chart.hpp"
#include "report.hpp"

namespace plan_pipeline {

namespace rp = roundpipe;
using examples::ledger_text;
using Space = rp::LedgerLine::Space;

namespace {

rp::Bytes bytes_in(AdaptivePlan const& plan, Space space) {
  return rp::total_bytes(plan.plan.ledger, space);
}

/// Of a call's layers and micro-batches before the fused stage.
struct KeptSaves {
  explicit KeptSaves(AdaptivePlan const& plan) {
    auto const& cut = plan.choice.chosen.cut;
    auto const& layers = plan.plan.model.layers;
    for (std::size_t layer = 0; layer < plan.plan.stages.partition.backward.front().first;
         ++layer) {
      if (layers[layer].save_levels.size() == 1) {
        continue;  // it saves nothing
      }
      for (std::size_t round = 0; round < cut.rounds; ++round) {
        auto const& set = plan.plan.host.working_set.of_round(round);
        for (std::size_t m = 0; m < cut.micro_batches_per_round; ++m) {
          kept += set.level(layer, m) > 0 ? 1 : 0;
          ++all;
        }
      }
    }
  }

  std::size_t kept = 0;  ///< How many of them the host keeps saves of.
  std::size_t all = 0;   ///< How many save something.
};

/// "1.3 % longer"
std::string difference(AdaptivePlan const& plan, double other_s) {
  auto const percent = 100 * (other_s / plan.choice.chosen.seconds - 1);
  return fmt::format("{:.1f} % {}", std::abs(percent), percent < 0 ? "less" : "longer");
}

std::string cut_text(rp::BatchCut const& cut) {
  return fmt::format("{} rows, M_R {}, R {}", cut.rows, cut.micro_batches_per_round, cut.rounds);
}

/// The best of the cuts that were tried and not taken, if \p counts says so.
template <class Counts>
rp::PlannedCut const* next_cut(rp::AutomaticChoice const& choice, Counts const& counts) {
  rp::PlannedCut const* best = nullptr;
  for (auto const& other : choice.tried) {
    if (counts(other.cut) && (best == nullptr || other.seconds < best->seconds)) {
      best = &other;
    }
  }
  return best;
}

/// A decision and its reason.
std::string line(char const* name, std::string const& value, std::string const& reason) {
  return "  " + to_string(rp::Decision{name, value, reason}) + "\n";
}

std::string cut_lines(AdaptivePlan const& plan, std::int64_t length) {
  auto const& cut = plan.choice.chosen.cut;
  auto const* const size =
      next_cut(plan.choice, [&](rp::BatchCut const& c) { return c.rows != cut.rows; });
  auto const* const rounds = next_cut(plan.choice, [&](rp::BatchCut const& c) {
    return c.rows == cut.rows && c.rounds != cut.rounds;
  });
  auto const reason = [&](rp::PlannedCut const* other) {
    return other == nullptr
               ? std::string("no other fits, or none could be faster")
               : cut_text(other->cut) + " compared at " + difference(plan, other->seconds);
  };
  return line("micro-batch",
              fmt::format("{} rows, {} tokens", cut.rows, cut.rows * length),
              reason(size)) +
         line("rounds",
              fmt::format("{} of M_R = {} micro-batches", cut.rounds, cut.micro_batches_per_round),
              reason(rounds));
}

/// What decided, where that is a comparison by forecast with another plan; else empty.
std::string compared_reason(AdaptivePlanner const& planner,
                            AdaptivePlan const& plan,
                            std::string_view decision) {
  auto const& stages = plan.plan.stages;
  auto const& set = plan.plan.host.working_set;
  if (stages.partition.forward.empty()) {
    return {};
  }
  auto const with = [&](std::string const& other, AdaptivePlanner::Change const& change) {
    auto const other_s = planner.seconds_with(plan, change);
    return other + (std::isfinite(other_s) ? " would take " + difference(plan, other_s)
                                           : std::string(" do not fit"));
  };
  if (decision == "checkpoints") {
    auto const of_layers = set.checkpoints() == rp::Checkpoints::layers;
    return with(of_layers ? "those behind stages" : "those behind every layer",
                [&](rp::PipelineOptions& o) {
                  o.checkpoints = of_layers ? rp::Checkpoints::stages : rp::Checkpoints::layers;
                });
  }
  if (decision == "saves" && KeptSaves(plan).kept > 0) {
    return with("recomputing all", [](rp::PipelineOptions& o) { o.offloaded_micro_batches = 0; });
  }
  if (decision == "overlap" && plan.choice.chosen.cut.rounds > 1) {
    auto const overlaps = set.overlaps_rounds();
    return with(overlaps ? "rounds one after another" : "rounds that overlap",
                [&](rp::PipelineOptions& o) { o.overlaps_rounds = !overlaps; });
  }
  if (decision == "parameters" && !stages.memory.resident_parameters.empty()) {
    return with("with none", [](rp::PipelineOptions& o) { o.resident_parameters = false; });
  }
  if (decision == "boundaries" && !(stages.resident.empty() && stages.sent.empty())) {
    return with("through the host all", [](rp::PipelineOptions& o) {
      o.resident_boundaries = false;
      o.peer_boundaries = false;
    });
  }
  return {};
}

std::string decision_lines(AdaptivePlanner const& planner, AdaptivePlan const& plan) {
  std::string text;
  for (auto& decision : rp::explain(plan.plan, plan.choice.options)) {
    auto reason = compared_reason(planner, plan, decision.name);
    if (!reason.empty()) {
      decision.reason = std::move(reason);
    }
    text += "  " + to_string(decision) + "\n";
  }
  return text;
}

/// The plan, what is live of it at the fullest moment, and what is not.
std::string arena_lines(AdaptivePlanner const& planner, AdaptivePlan const& plan) {
  auto const& memory = plan.plan.stages.memory;
  auto const live = planner.most_live_bytes(plan);
  auto const bytes_of = [](rp::RingLayout const& ring) { return ring.entry_bytes * ring.count; };
  std::vector<std::string> parts;
  auto const add = [&](char const* name, rp::Bytes planned, rp::Bytes at_fullest) {
    if (auto const idle = planned - at_fullest; idle >= memory.bytes / 100) {
      parts.push_back(fmt::format("{} {}", name, rp::format_bytes(idle)));
    }
  };
  auto const ring_of = [&](char const* name, rp::BufferKind kind) {
    auto const i = static_cast<std::size_t>(kind);
    add(name, bytes_of(memory.rings[i]) + bytes_of(memory.forward_rings[i]), live.at_fullest[i]);
  };
  auto const parameters = static_cast<std::size_t>(rp::BufferKind::parameters);
  auto const gradients = static_cast<std::size_t>(rp::BufferKind::gradients);
  constexpr auto scratch = rp::device_ring_count;
  add("parameters, gradients, scratch",
      memory.region_bytes + bytes_of(memory.forward_rings[parameters]) +
          memory.resident_parameter_bytes(),
      live.at_fullest[parameters] + live.at_fullest[gradients] + live.at_fullest[scratch]);
  ring_of("activations in", rp::BufferKind::activations_in);
  ring_of("activations out", rp::BufferKind::activations_out);
  ring_of("saves", rp::BufferKind::saves);
  add("resident boundaries",
      bytes_of(memory.resident.checkpoints) + bytes_of(memory.resident.gradients),
      live.at_fullest[scratch + 1]);
  return fmt::format(
      "arena of each device: planned {}, most live at once {}, ratio {:.2f}\n"
      "  the rest, where 1 % or more: {}\n",
      rp::format_bytes(memory.bytes),
      rp::format_bytes(live.total()),
      static_cast<double>(memory.bytes) / static_cast<double>(live.total()),
      parts.empty() ? "none" : fmt::format("{}", fmt::join(parts, ", ")));
}

std::string title(AdaptivePlanner const& planner) {
  auto const& p = planner.problem();
  return fmt::format("{} on {} x {}: {} sequences of {} tokens an iteration",
                     p.shape.name,
                     p.devices,
                     p.hardware.device.name,
                     p.batch.rows,
                     p.batch.length);
}

std::string budget_text(rp::Bytes budget) {
  return budget >= no_limit ? "no limit" : rp::format_bytes(budget);
}

}  // namespace

std::string adaptive_text(AdaptivePlanner const& planner, AdaptivePlan const& plan) {
  auto const& p = planner.problem();
  auto const sustained = p.hardware.sustained_flops_per_second;
  return fmt::format(
             "{}, {:.2f}e9 parameters\n"
             "budgets: {} of each device, {} of the host\n\n",
             title(planner),
             1e-9 * static_cast<double>(plan.plan.blocks.parameter_count()),
             budget_text(plan.choice.options.device_memory),
             budget_text(p.host_memory)) +
         "the library chooses\n" + cut_lines(plan, p.batch.length) + decision_lines(planner, plan) +
         fmt::format(
             "\nforecast: {:.3f} s an iteration, {:.0f} tokens/s, MFU {:.1f} % of {:.0f} "
             "TFLOP/s a device\n"
             "  layers compute at {}\n\n",
             plan.seconds,
             planner.tokens_per_second(plan),
             100 * planner.mfu(plan),
             1e-12 * p.hardware.device.flops_per_second,
             sustained > 0
                 ? fmt::format("{:.0f} TFLOP/s, as sustained in training", 1e-12 * sustained)
                 : std::string("the peak, which none reaches: a bound")) +
         arena_lines(planner, plan) + ledger_text(plan.plan.ledger);
}

std::string frontier_text(AdaptivePlanner const& planner, std::span<AdaptivePlan const> plans) {
  auto text = fmt::format("{:>12} {:>9} {:>7} {:>5} {:>5} {:>3} {:>7} {:>7}  {:<12} {:>8} {:>12}\n",
                          "device",
                          "tokens/s",
                          "MFU %",
                          "rows",
                          "M_R",
                          "R",
                          "stages",
                          "fused",
                          "checkpoints",
                          "kept %",
                          "host");
  for (auto const& plan : plans) {
    auto const& cut = plan.choice.chosen.cut;
    auto const& partition = plan.plan.stages.partition;
    KeptSaves const saves(plan);
    auto const kept = saves.all > 0
                          ? 100.0 * static_cast<double>(saves.kept) / static_cast<double>(saves.all)
                          : 0;
    text += fmt::format(
        "{:>12} {:>9.0f} {:>7.1f} {:>5} {:>5} {:>3} {:>7} {:>7}  {:<12} {:>8.0f} {:>12}\n",
        rp::format_bytes(plan.choice.options.device_memory),
        planner.tokens_per_second(plan),
        100 * planner.mfu(plan),
        cut.rows,
        cut.micro_batches_per_round,
        cut.rounds,
        partition.size(),
        partition.backward.front().count,
        partition.forward.empty()                                             ? "none"
        : plan.plan.host.working_set.checkpoints() == rp::Checkpoints::layers ? "layers"
                                                                              : "stages",
        kept,
        rp::format_bytes(bytes_in(plan, Space::host)));
  }
  return text;
}

void write_frontier(std::ostream& out,
                    AdaptivePlanner const& planner,
                    std::span<AdaptivePlan const> plans) {
  using rp::detail::Anchor;
  using namespace chart;
  constexpr std::string_view mark = "#00518a";
  auto const gib = [](AdaptivePlan const& plan) {
    return static_cast<double>(plan.choice.options.device_memory) / 0x1p30;
  };
  auto const from = std::floor(std::log2(gib(plans.front())));
  auto const to = std::max(from + 1, std::ceil(std::log2(gib(plans.back()))));
  double most = 0;
  for (auto const& plan : plans) {
    most = std::max(most, planner.tokens_per_second(plan));
  }
  most *= 1.15;  // room for labels
  auto const x_of = [&](double log2_gib) { return left + (log2_gib - from) / (to - from) * width; };
  auto const y_of = [&](double tokens) { return top + height - tokens / most * height; };

  rp::detail::SvgCanvas canvas;
  canvas.text(left, 20, title(planner), {.font_px = 15});
  for (auto const& tick : rp::detail::time_ticks(most, 6)) {
    canvas.rectangle(left, y_of(tick.at_s), width, 1, grid);
    canvas.text(
        left - 8, y_of(tick.at_s), fmt::format("{:.0f}", tick.at_s), {font, ink, Anchor::end});
  }
  for (auto power = from; power <= to; ++power) {
    canvas.rectangle(x_of(power), top + height, 1, 5, ink);
    canvas.text(x_of(power),
                top + height + 14,
                fmt::format("{:g}", std::exp2(power)),
                {font, ink, Anchor::middle});
  }
  canvas.rectangle(left, top + height, width, 1, ink);
  canvas.text(left, top - 14, "tokens/s, by forecast", {.font_px = font});
  canvas.text(left + width / 2,
              top + height + 34,
              "device memory, GiB as the driver counts",
              {font, ink, Anchor::middle});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    auto const x = x_of(std::log2(gib(plans[i])));
    auto const tokens = planner.tokens_per_second(plans[i]);
    auto const y = y_of(tokens);
    if (i > 0) {  // up, or down where the search did worse
      auto const before = y_of(planner.tokens_per_second(plans[i - 1]));
      canvas.rectangle(x - 0.75, std::min(y, before), 1.5, std::abs(before - y), mark);
    }
    auto const end = i + 1 < plans.size() ? x_of(std::log2(gib(plans[i + 1]))) : left + width;
    canvas.rectangle(x, y - 0.75, end - x, 1.5, mark);
  }
  for (auto const& plan : plans) {
    auto const x = x_of(std::log2(gib(plan)));
    auto const tokens = planner.tokens_per_second(plan);
    canvas.rectangle(x - 3.5, y_of(tokens) - 3.5, 7, 7, mark);
    auto const label = [&](double above, std::string const& text) {
      canvas.text(x, y_of(tokens) - above, text, {font, ink, Anchor::middle});
    };
    label(25, fmt::format("{:.0f}", tokens));
    label(12, fmt::format("{:.1f} GiB", gib(plan)));
  }
  out << canvas.picture(left + width + 50, top + height + 50, "Tokens a second by device memory");
}

}  // namespace plan_pipeline
