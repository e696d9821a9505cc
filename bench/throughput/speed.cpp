// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <throughput/speed.hpp>

#include <common/model_flops.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace throughput {

Speed speed_of(std::span<double const> iterations_s,
               roundpipe::nn::TransformerConfig const& config,
               Workload const& workload,
               std::size_t devices,
               Peak const& peak) {
  std::vector<double> sorted(iterations_s.begin(), iterations_s.end());
  std::ranges::sort(sorted);
  Speed speed;
  speed.iteration_s =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  speed.median_s = sorted[sorted.size() / 2];
  speed.tokens_per_second = workload.tokens() / speed.iteration_s;
  speed.device_flops = examples::model_flops(config, workload.context, workload.tokens()) /
                       speed.iteration_s / static_cast<double>(devices);
  speed.mfu = peak.flops > 0 ? speed.device_flops / peak.flops : 0;
  return speed;
}

std::string model_text(Workload const& workload,
                       roundpipe::nn::TransformerConfig const& config,
                       std::uint64_t parameters) {
  return fmt::format("{}, {} blocks, {:.2f}e9 parameters",
                     workload.shape,
                     config.layers,
                     1e-9 * static_cast<double>(parameters));
}

std::string iteration_text(Speed const& speed, std::size_t measured) {
  return fmt::format(
      "{:.4f} s (median {:.4f}, {} measured)", speed.iteration_s, speed.median_s, measured);
}

std::string flops_text(Speed const& speed, Peak const& peak) {
  return fmt::format("{:.1f}, MFU {:.1f} % of {:.0f} ({})",
                     1e-12 * speed.device_flops,
                     100 * speed.mfu,
                     1e-12 * peak.flops,
                     peak.source);
}

void add_speed(nlohmann::ordered_json& json,
               std::span<double const> iterations_s,
               Speed const& speed,
               Peak const& peak) {
  json["iterations_s"] = iterations_s;
  json["iteration_s"] = speed.iteration_s;
  json["median_s"] = speed.median_s;
  json["tokens_per_second"] = speed.tokens_per_second;
  json["model_tflops_per_device"] = 1e-12 * speed.device_flops;
  json["peak_tflops"] = 1e-12 * peak.flops;
  json["peak_source"] = peak.source;
  json["mfu"] = speed.mfu;
}

}  // namespace throughput
