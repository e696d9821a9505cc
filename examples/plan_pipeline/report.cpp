// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "report.hpp"

#include <roundpipe/bubble/bubbles.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/trace/chrome_trace.hpp>
#include <roundpipe/trace/svg_timeline.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <range/v3/algorithm/max.hpp>
#include <range/v3/range/conversion.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/filter.hpp>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/transform.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace plan_pipeline {

namespace rp = roundpipe;
namespace views = ranges::views;

namespace {

/// "transfer_stall"
std::string key_of(rp::BubbleCause cause) {
  std::string key = rp::name_of(cause);
  std::ranges::replace(key, ' ', '_');
  return key;
}

auto all_causes() {
  return views::iota(std::size_t{0}, rp::bubble_cause_count) |
         views::transform([](std::size_t i) { return static_cast<rp::BubbleCause>(i); });
}

/// As a share of all devices' time.
double percent_of(Outcome const& outcome, rp::BubbleCause cause) {
  auto const all_s = outcome.bubbles.busy_s + outcome.bubbles.bubbles.total();
  return all_s > 0 ? 100 * outcome.bubbles.bubbles[cause] / all_s : 0;
}

/// The causes of at least a tenth of a percent, the largest first.
std::string causes_text(Outcome const& outcome) {
  std::vector<std::pair<double, std::string>> parts;
  for (auto const cause : all_causes()) {
    if (auto const percent = percent_of(outcome, cause); percent >= 0.1) {
      parts.emplace_back(percent, rp::name_of(cause));
    }
  }
  std::ranges::sort(parts, std::greater<>());
  return fmt::format("{}",
                     fmt::join(parts | views::transform([](auto const& part) {
                                 return fmt::format("{} {:.1f}", part.second, part.first);
                               }),
                               ", "));
}

rp::Bytes peak_bytes(Outcome const& outcome) {
  return outcome.device_bytes.empty()
             ? 0
             : ranges::max(outcome.device_bytes | views::transform(&rp::DeviceUse::total));
}

/// How long each device computes in the timeline.
std::string devices_text(Outcome const& outcome) {
  std::vector<double> busy_s(outcome.timeline.devices, 0.0);
  auto is_compute = [](rp::TimelineEntry const& entry) {
    return entry.lane.kind == rp::LaneKind::compute;
  };
  for (auto const& entry : outcome.timeline | views::filter(is_compute)) {
    busy_s[entry.lane.device.index()] += entry.seconds();
  }
  std::string text;
  for (auto const& [d, use] : outcome.device_bytes | views::enumerate) {
    text += fmt::format("  device {:<3} computes {:10.1f} ms of {:.1f} ms",
                        d,
                        1e3 * busy_s[d],
                        1e3 * outcome.bubbles.makespan_s);
    if (use.total() > 0) {
      text += fmt::format(
          "; holds {}: parameters {}, gradients {}, boundaries {}, saved {}, "
          "workspace {}",
          rp::format_bytes(use.total()),
          rp::format_bytes(use.parameters),
          rp::format_bytes(use.gradients),
          rp::format_bytes(use.boundaries),
          rp::format_bytes(use.saved),
          rp::format_bytes(use.workspace));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<std::size_t> layer_counts(std::vector<rp::LayerRange> const& stages) {
  return stages | views::transform(&rp::LayerRange::count) | ranges::to<std::vector>();
}

std::string counts_text(std::vector<std::size_t> const& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size();) {
    auto const first = i;
    while (i < counts.size() && counts[i] == counts[first]) {
      ++i;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ", ", counts[first]);
    text += i - first > 1 ? fmt::format(" ({}x)", i - first) : "";
  }
  return text.empty() ? "none" : text;
}

void write_json(std::ostream& out, std::span<Outcome const> outcomes) {
  using Json = nlohmann::ordered_json;
  auto list = Json::array();
  for (auto const& outcome : outcomes) {
    Json causes = Json::object();
    for (auto const cause : all_causes()) {
      causes[key_of(cause)] = percent_of(outcome, cause);
    }
    Json devices = Json::array();
    for (auto const& use : outcome.device_bytes) {
      devices.push_back({{"parameters", use.parameters},
                         {"gradients", use.gradients},
                         {"boundaries", use.boundaries},
                         {"saved", use.saved},
                         {"workspace", use.workspace}});
    }
    list.push_back({{"schedule", outcome.schedule},
                    {"forward_stages", layer_counts(outcome.partition.forward)},
                    {"backward_stages", layer_counts(outcome.partition.backward)},
                    {"micro_batches_per_round", outcome.shape.micro_batches_per_round},
                    {"t_max_ms", 1e3 * outcome.t_max_s},
                    {"stages", outcome.partition.size()},
                    {"objective_ms", 1e3 * outcome.objective_s},
                    {"iterations", outcome.bubbles.iterations},
                    {"makespan_ms", 1e3 * outcome.bubbles.makespan_s},
                    {"iteration_ms", 1e3 * outcome.bubbles.iteration_s},
                    {"bubble_percent", 100 * outcome.bubbles.ratio()},
                    {"bubble_by_cause_percent", std::move(causes)},
                    {"peak_in_flight_forwards", outcome.peak_in_flight_forwards},
                    {"boundary_transfers", outcome.boundary_transfers},
                    {"peak_device_bytes", std::move(devices)},
                    {"planning_ms", 1e3 * outcome.planning_s},
                    {"warnings", outcome.warnings}});
  }
  out << list.dump(2) << '\n';
}

std::string table_text(Problem const& problem,
                       Options const& o,
                       std::span<Outcome const> outcomes) {
  auto text = fmt::format("{}: {} layers on {} devices, {} micro-batches, {}\n\n",
                          problem.name,
                          problem.costs.size(),
                          o.devices,
                          o.micro_batches_per_call,
                          o.asynchronous ? "asynchronous" : "synchronous");
  text += fmt::format("{:<17} {:>6} {:>5} {:>10} {:>12} {:>12} {:>8}  {}\n",
                      "schedule",
                      "stages",
                      "M_R",
                      "t_max ms",
                      "makespan ms",
                      "iteration ms",
                      "bubble",
                      "of which (points)");
  for (auto const& outcome : outcomes) {
    text += fmt::format("{:<17} {:>6} {:>5} {:>10.3f} {:>12.3f} {:>12.3f} {:>7.2f}%  {}\n",
                        outcome.schedule,
                        outcome.partition.size(),
                        outcome.shape.micro_batches_per_round,
                        1e3 * outcome.t_max_s,
                        1e3 * outcome.bubbles.makespan_s,
                        1e3 * outcome.bubbles.iteration_s,
                        100 * outcome.bubbles.ratio(),
                        causes_text(outcome));
  }
  if (outcomes.size() == 1) {
    auto const& outcome = outcomes.front();
    text += fmt::format("\nforward stages, layers each:   {}\nbackward stages, layers each:  {}\n",
                        counts_text(layer_counts(outcome.partition.forward)),
                        counts_text(layer_counts(outcome.partition.backward)));
    text += fmt::format("in flight by stage, at most:   {}\nboundaries between devices:    {}\n",
                        counts_text(outcome.peak_in_flight_forwards),
                        outcome.boundary_transfers);
    text +=
        fmt::format("planned in {:.3f} ms\n\n{}", 1e3 * outcome.planning_s, devices_text(outcome));
  } else if (peak_bytes(outcomes.front()) > 0) {
    text += "\nmemory of the fullest device:\n";
    for (auto const& outcome : outcomes) {
      text += fmt::format("  {:<17} {}\n", outcome.schedule, rp::format_bytes(peak_bytes(outcome)));
    }
  }
  return text;
}

void write_svg(std::ostream& out, Outcome const& outcome) {
  rp::SvgOptions options;
  options.title = outcome.schedule;
  options.bubble_percent = 100 * outcome.bubbles.ratio();
  auto const iterations = outcome.bubbles.iterations;
  if (iterations > 2) {
    options.to_s = outcome.bubbles.makespan_s - outcome.bubbles.iteration_s;
    options.from_s = *options.to_s - outcome.bubbles.iteration_s;
    options.turns = rp::SvgTurns::calls;
  } else {
    options.from_s = 0;
    options.turns = outcome.shape.rounds > 1 ? rp::SvgTurns::rounds : rp::SvgTurns::none;
  }
  rp::write_svg_timeline(out, outcome.timeline, options);
}

void write_trace(std::ostream& out, Outcome const& outcome) {
  rp::write_chrome_trace(outcome.timeline, out);
}

}  // namespace plan_pipeline
