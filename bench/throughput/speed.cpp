// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <throughput/speed.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace throughput {

double model_flops(roundpipe::nn::TransformerConfig const& config, Workload const& workload) {
  auto const number = [](std::int64_t n) { return static_cast<double>(n); };
  auto const block =
      number(config.hidden) *
      number(2 * config.query_width() + 2 * config.kv_width() + 3 * config.intermediate);
  auto const weights =
      number(config.layers) * block + number(config.hidden) * number(config.vocabulary);
  auto const attention = 6 * number(config.layers) * number(config.query_width()) *
                         number(workload.context) * workload.tokens();
  return 6 * weights * workload.tokens() + attention;
}

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
  speed.device_flops =
      model_flops(config, workload) / speed.iteration_s / static_cast<double>(devices);
  speed.mfu = peak.flops > 0 ? speed.device_flops / peak.flops : 0;
  return speed;
}

}  // namespace throughput
