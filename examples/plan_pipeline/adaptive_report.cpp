// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "adaptive_report.hpp"

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/adaws_terms.hpp>
#include <roundpipe/plan/plan_options.hpp>
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
using Space = rp::LedgerLine::Space;

namespace {

rp::Bytes bytes_in(AdaptivePlan const& plan, Space space) {
  return rp::total_bytes(plan.plan.ledger, space);
}

/// What the host keeps of a call's saves before the fused stage.
struct KeptSaves {
  explicit KeptSaves(AdaptivePlan const& plan) {
    auto const& layers = plan.plan.model.layers;
    auto const& set = plan.plan.host.working_set;
    for (std::size_t layer = 0; layer < plan.plan.stages.partition.backward.front().first;
         ++layer) {
      top = std::max(top, layers[layer].save_levels.size() - 1);
      by_level.resize(top + 1);
      if (layers[layer].save_levels.size() > 1) {  // it saves something
        auto const& cut = plan.choice.chosen.cut;
        for (std::size_t round = 0; round < cut.rounds; ++round) {
          for (std::size_t m = 0; m < cut.micro_batches_per_round; ++m) {
            ++by_level[set.of_round(round).level(layer, m)];
            ++all;
          }
        }
      }
    }
  }

  [[nodiscard]] std::size_t kept() const { return by_level.empty() ? 0 : all - by_level[0]; }
  /// "38 at level 3 of 4"
  [[nodiscard]] std::string text() const {
    std::vector<std::string> parts;
    for (std::size_t level = 1; level < by_level.size(); ++level) {
      if (by_level[level] > 0) {
        parts.push_back(fmt::format("{} at level {} of {}", by_level[level], level, top));
      }
    }
    return fmt::format("{}", fmt::join(parts, ", "));
  }

  std::size_t top = 0;  ///< The highest level.
  std::vector<std::size_t> by_level;
  std::size_t all = 0;  ///< Layers times micro-batches.
};

/// "1.3 % longer"
std::string compared(AdaptivePlan const& plan, double other_s) {
  if (!std::isfinite(other_s)) {
    return "do not fit";
  }
  auto const percent = 100 * (other_s / plan.choice.chosen.seconds - 1);
  return fmt::format("would take {:.1f} % {}", std::abs(percent), percent < 0 ? "less" : "longer");
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
  return fmt::format("  {:<13}{}; {}\n", name, value, reason);
}

std::string cut_lines(AdaptivePlan const& plan, std::int64_t length) {
  auto const& cut = plan.choice.chosen.cut;
  auto const* const size =
      next_cut(plan.choice, [&](rp::BatchCut const& c) { return c.rows != cut.rows; });
  auto const* const rounds = next_cut(plan.choice, [&](rp::BatchCut const& c) {
    return c.rows == cut.rows && c.rounds != cut.rounds;
  });
  auto const reason = [&](rp::PlannedCut const* other) {
    return other == nullptr ? std::string("no other fits, or none could be faster")
                            : cut_text(other->cut) + " " + compared(plan, other->seconds);
  };
  return line("micro-batch",
              fmt::format("{} rows, {} tokens", cut.rows, cut.rows * length),
              reason(size)) +
         line("rounds",
              fmt::format("{} of M_R = {} micro-batches", cut.rounds, cut.micro_batches_per_round),
              reason(rounds));
}

std::string stage_lines(AdaptivePlan const& plan) {
  auto const& [forward, backward] = plan.plan.stages.partition;
  auto const fused = backward.front().count;
  if (forward.empty()) {
    return line("stages",
                fmt::format("one, of {} layers", fused),
                "the device has room for all, and nothing runs twice");
  }
  return line("stages",
              fmt::format("forward {}; backward {} layers",
                          counts_text(layer_counts(forward)),
                          counts_text(layer_counts(backward))),
              fmt::format("the first backward stage, the fused one, runs its {} forward once; "
                          "the others run twice where their saves are not kept",
                          fused));
}

std::string working_set_lines(AdaptivePlanner const& planner, AdaptivePlan const& plan) {
  if (plan.plan.stages.partition.forward.empty()) {
    return line("checkpoints", "none", "there is one stage") +
           line("saves", "all stay on the device", "the stage runs backward at once");
  }
  auto const of_layers = plan.plan.host.working_set.checkpoints() == rp::Checkpoints::layers;
  auto const other_s = planner.seconds_with(plan, [&](rp::PipelineOptions& o) {
    o.checkpoints = of_layers ? rp::Checkpoints::stages : rp::Checkpoints::layers;
  });
  auto text = line(
      "checkpoints",
      of_layers ? "behind every layer, on the host" : "behind stages, on the host",
      (of_layers ? "those behind stages " : "those behind every layer ") + compared(plan, other_s));
  KeptSaves const saves(plan);
  if (saves.kept() == 0) {
    return text + line("saves",
                       "those of the fused stage stay on the device, the others are recomputed",
                       of_layers
                           ? "no save level that the link carries and the host holds is faster"
                           : "save levels need checkpoints behind every layer");
  }
  auto const recomputing_s =
      planner.seconds_with(plan, [](rp::PipelineOptions& o) { o.offloaded_micro_batches = 0; });
  return text +
         line("saves",
              fmt::format("of a call's {} before the fused stage the host keeps {}; the rest is "
                          "recomputed, those of the fused stage stay on the device",
                          saves.all,
                          saves.text()),
              "recomputing all " + compared(plan, recomputing_s));
}

std::string resident_line(AdaptivePlanner const& planner, AdaptivePlan const& plan) {
  auto const& stages = plan.plan.stages;
  if (stages.partition.forward.empty()) {
    return {};
  }
  if (stages.resident.empty() && stages.sent.empty()) {
    return line("boundaries", "all pass through the host", "there is no room, or nothing gained");
  }
  auto const& room = stages.memory.resident;
  auto const count = [&](rp::BufferKind kind) {
    return std::count_if(stages.resident.begin(),
                         stages.resident.end(),
                         [&](rp::MadeBoundary const& made) { return made.kind == kind; });
  };
  auto const other_s = planner.seconds_with(plan, [](rp::PipelineOptions& o) {
    o.resident_boundaries = false;
    o.peer_boundaries = false;
  });
  auto const sends = std::count_if(
      plan.plan.graph.actions.begin(), plan.plan.graph.actions.end(), [](rp::Action const& action) {
        return action.kind == rp::ActionKind::send_boundary;
      });
  auto text = fmt::format("of a round {} checkpoints and {} gradients stay on {}, in {}",
                          count(rp::BufferKind::checkpoint),
                          count(rp::BufferKind::boundary_gradient),
                          sends > 0 ? "devices" : "the device",
                          rp::format_bytes(room.checkpoints.entry_bytes * room.checkpoints.count +
                                           room.gradients.entry_bytes * room.gradients.count));
  if (sends > 0) {
    text +=
        fmt::format("; of a call {} go from device to device, of a round {} to the host as well",
                    sends,
                    stages.sent.size());
  }
  return line("boundaries", text, "through the host all " + compared(plan, other_s));
}

std::string parameters_line(AdaptivePlanner const& planner, AdaptivePlan const& plan) {
  auto const& stages = plan.plan.stages;
  auto const& stay = stages.memory.resident_parameters;
  if (stages.partition.forward.empty()) {
    return {};
  }
  if (stay.empty()) {
    return line("parameters", "go up for each stage", "there is no room, or nothing gained");
  }
  auto const other_s =
      planner.seconds_with(plan, [](rp::PipelineOptions& o) { o.resident_parameters = false; });
  return line("parameters",
              fmt::format("{} of {} blocks stay on the device{} for a call, in {}",
                          stay.size(),
                          plan.plan.blocks.blocks.size(),
                          planner.problem().devices > 1 ? "s" : "",
                          rp::format_bytes(stages.memory.resident_parameter_bytes())),
              "with none " + compared(plan, other_s));
}

std::string overlap_line(AdaptivePlanner const& planner, AdaptivePlan const& plan) {
  if (plan.choice.chosen.cut.rounds == 1 || plan.plan.stages.partition.forward.empty()) {
    return {};
  }
  auto const overlaps = plan.plan.host.working_set.overlaps_rounds();
  auto const other_s =
      planner.seconds_with(plan, [&](rp::PipelineOptions& o) { o.overlaps_rounds = !overlaps; });
  return line(
      "overlap",
      overlaps ? "a round's forward takes turns with the backward of the round before"
               : "rounds run one after another",
      (overlaps ? "rounds one after another " : "rounds that overlap ") + compared(plan, other_s));
}

std::string adaws_line(AdaptivePlanner const& planner, AdaptivePlan const& plan) {
  if (planner.problem().devices != 1) {
    return {};  // AdaWS has no terms for several
  }
  auto const& cut = plan.choice.chosen.cut;
  rp::PlanOptions const options{.micro_batches_per_round = cut.micro_batches_per_round,
                                .rounds = cut.rounds};
  return fmt::format("  {:<13}{}\n",
                     "as AdaWS",
                     to_string(rp::adaws_terms(plan.plan.model, plan.plan.stages, options)));
}

std::string buffering_line(AdaptivePlan const& plan) {
  auto const& stages = plan.plan.stages;
  auto const& memory = stages.memory;
  auto const& entries = memory.buffering;
  auto widest = entries;
  widest.parameters = widest.gradients = widest.activations = 2;
  auto const budget = plan.choice.options.device_memory;
  auto const wide_memory =
      stages.train.size() > 1
          ? rp::memory_with(stages, widest)
          : rp::lay_out_stages(plan.plan.model, plan.plan.blocks, stages.partition, widest).memory;
  auto const wide = bytes_in(plan, Space::device) - memory.bytes + wide_memory.bytes;
  auto value = fmt::format("entries of parameters {}, gradients {}, activations {}",
                           entries.parameters,
                           entries.gradients,
                           entries.activations);
  if (KeptSaves(plan).kept() > 0) {
    value += fmt::format(", saves {}", entries.saves);
  }
  return line("buffering",
              value,
              entries == widest
                  ? std::string("every copy has room beside compute")
                  : fmt::format("two of each would take {}{}",
                                rp::format_bytes(wide),
                                wide <= budget ? ", and the forecast gains nothing by them" : ""));
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

std::string ledger_text(std::span<rp::LedgerLine const> ledger) {
  std::string text;
  for (auto const& [space, name] :
       {std::pair(Space::device, "each device"), std::pair(Space::host, "the host")}) {
    text +=
        fmt::format("ledger of {}: {}\n", name, rp::format_bytes(rp::total_bytes(ledger, space)));
    for (auto const& entry : ledger) {
      if (entry.space == space) {
        text += fmt::format("  {:<56}{:>12}\n", entry.name, rp::format_bytes(entry.bytes));
      }
    }
  }
  return text;
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
         "the library chooses\n" + cut_lines(plan, p.batch.length) + stage_lines(plan) +
         working_set_lines(planner, plan) + overlap_line(planner, plan) +
         parameters_line(planner, plan) + resident_line(planner, plan) + buffering_line(plan) +
         adaws_line(planner, plan) +
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
    auto const kept =
        saves.all > 0 ? 100.0 * static_cast<double>(saves.kept()) / static_cast<double>(saves.all)
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
