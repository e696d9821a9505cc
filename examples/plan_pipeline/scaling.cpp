// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "scaling.hpp"

#include <roundpipe/trace/svg_canvas.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <string_view>
#include <utility>

#include "chart.hpp"

namespace plan_pipeline {

namespace rp = roundpipe;

namespace {

/// By network, the efficiency of \p hosts hosts with \p micro_batches micro-batches each.
std::vector<double> efficiencies(AdaptivePlanner const& planner,
                                 AdaptivePlan const& plan,
                                 ScalingOptions const& options,
                                 std::size_t hosts,
                                 std::size_t micro_batches) {
  auto const alone_s = planner.seconds_on_hosts(plan, micro_batches, 1, {});
  std::vector<double> result;
  for (auto const gbits : options.network_gbits) {
    auto const seconds =
        planner.seconds_on_hosts(plan, micro_batches, hosts, {gbits * 1e9 / 8, options.latency_s});
    result.push_back(std::isfinite(seconds) ? alone_s / seconds : 0);
  }
  return result;
}

std::string row(std::string const& name, std::vector<double> const& of_networks) {
  auto text = fmt::format("{:>14}", name);
  for (auto const efficiency : of_networks) {
    text += fmt::format(" {:>14.3f}", efficiency);
  }
  return text + "\n";
}

std::string head(char const* name, ScalingOptions const& options) {
  auto text = fmt::format("{:>14}", name);
  for (auto const gbits : options.network_gbits) {
    text += fmt::format(" {:>14}", fmt::format("{:g} Gbit/s", gbits));
  }
  return text + "\n";
}

}  // namespace

Scaling scaling_of(AdaptivePlanner const& planner,
                   AdaptivePlan const& plan,
                   ScalingOptions options) {
  auto const& cut = plan.choice.chosen.cut;
  Scaling scaling;
  scaling.options = std::move(options);
  auto const& hosts = scaling.options.hosts;
  scaling.most_hosts = *std::ranges::max_element(hosts);
  auto const start = [&](std::size_t count, std::size_t micro_batches) {
    return std::async(std::launch::async, [&planner, &plan, &scaling, count, micro_batches] {
      return efficiencies(planner, plan, scaling.options, count, micro_batches);
    });
  };
  auto const whole_batch = cut.micro_batches_per_round * cut.rounds;
  scaling.sequences = cut.rows * static_cast<std::int64_t>(whole_batch);
  std::vector<std::future<std::vector<double>>> by_hosts;
  for (auto const count : hosts) {
    by_hosts.push_back(start(count, whole_batch));
  }
  std::vector<std::future<std::vector<double>>> by_batch;
  for (std::size_t const of_device : {1, 2, 3, 4, 6, 8, 12, 16}) {
    auto const micro_batches = of_device * planner.problem().devices;
    scaling.batches.push_back(cut.rows * static_cast<std::int64_t>(micro_batches));
    by_batch.push_back(start(scaling.most_hosts, micro_batches));
  }
  for (auto& each : by_hosts) {
    scaling.by_hosts.push_back(each.get());
  }
  for (auto& each : by_batch) {
    scaling.by_batch.push_back(each.get());
  }
  for (std::size_t n = 0; n < scaling.options.network_gbits.size(); ++n) {
    auto& from = scaling.hides_from.emplace_back();
    for (std::size_t b = 0; b < scaling.batches.size() && !from; ++b) {
      if (scaling.by_batch[b][n] >= Scaling::hidden) {
        from = scaling.batches[b];
      }
    }
  }
  return scaling;
}

std::string scaling_text(Scaling const& scaling) {
  auto text =
      fmt::format("hosts of {} sequences each: efficiency against one host alone, by forecast\n",
                  scaling.sequences) +
      head("hosts", scaling.options);
  for (std::size_t h = 0; h < scaling.by_hosts.size(); ++h) {
    text += row(fmt::format("{}", scaling.options.hosts[h]), scaling.by_hosts[h]);
  }
  text += fmt::format("\n{} hosts, by the sequences of each\n", scaling.most_hosts) +
          head("sequences", scaling.options);
  for (std::size_t b = 0; b < scaling.batches.size(); ++b) {
    text += row(fmt::format("{}", scaling.batches[b]), scaling.by_batch[b]);
  }
  for (std::size_t n = 0; n < scaling.hides_from.size(); ++n) {
    auto const& from = scaling.hides_from[n];
    text += fmt::format("  {:g} Gbit/s {} ({:g} and more)\n",
                        scaling.options.network_gbits[n],
                        from ? fmt::format("hide from {} sequences a host on", *from)
                             : std::string("hide with none of these batches"),
                        Scaling::hidden);
  }
  return text;
}

void write_scaling(std::ostream& out, AdaptivePlanner const& planner, Scaling const& scaling) {
  using rp::detail::Anchor;
  using namespace chart;
  constexpr std::array<std::string_view, 4> marks{"#00518a", "#b45309", "#15803d", "#7e22ce"};
  auto const& p = planner.problem();
  auto const first = std::log2(static_cast<double>(scaling.batches.front()));
  auto const last = std::log2(static_cast<double>(scaling.batches.back()));
  auto const x_of = [&](std::int64_t sequences) {
    return left + (std::log2(static_cast<double>(sequences)) - first) / (last - first) * width;
  };
  auto const y_of = [&](double efficiency) { return top + height - efficiency / 1.1 * height; };

  rp::detail::SvgCanvas canvas;
  canvas.text(left,
              20,
              fmt::format("{} on {} hosts of {} x {}, sequences of {} tokens",
                          p.shape.name,
                          scaling.most_hosts,
                          p.devices,
                          p.hardware.device.name,
                          p.batch.length),
              {.font_px = 15});
  for (int tick = 0; tick <= 10; tick += 2) {
    canvas.rectangle(left, y_of(tick / 10.0), width, 1, grid);
    canvas.text(
        left - 8, y_of(tick / 10.0), fmt::format("{:.1f}", tick / 10.0), {font, ink, Anchor::end});
  }
  for (auto const sequences : scaling.batches) {
    canvas.rectangle(x_of(sequences), top + height, 1, 5, ink);
    canvas.text(x_of(sequences),
                top + height + 14,
                fmt::format("{}", sequences),
                {font, ink, Anchor::middle});
  }
  canvas.rectangle(left, top + height, width, 1, ink);
  canvas.text(left, top - 14, "efficiency against one host, by forecast", {.font_px = font});
  canvas.text(left + width / 2,
              top + height + 34,
              "sequences of each host in an iteration",
              {font, ink, Anchor::middle});
  for (std::size_t n = 0; n < scaling.options.network_gbits.size(); ++n) {
    auto const mark = marks[n % marks.size()];
    std::vector<std::array<double, 2>> points;
    for (std::size_t b = 0; b < scaling.batches.size(); ++b) {
      points.push_back({x_of(scaling.batches[b]), y_of(scaling.by_batch[b][n])});
      canvas.rectangle(points.back()[0] - 3, points.back()[1] - 3, 6, 6, mark);
    }
    canvas.line(points, mark, 1.5);
    canvas.text(left + width - 8,
                y_of(0.1) - 16 * static_cast<double>(n),
                fmt::format("{:g} Gbit/s a host", scaling.options.network_gbits[n]),
                {font, mark, Anchor::end});
  }
  out << canvas.picture(left + width + 50, top + height + 50, "Efficiency by the batch of a host");
}

}  // namespace plan_pipeline
