// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/adaws/adaws_problem.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace roundpipe {

namespace detail {

/// The time of \p bytes on the link; \p rate 0 is unlimited.
[[nodiscard]] inline double adaws_seconds(Bytes bytes, double rate) noexcept {
  return rate > 0 ? static_cast<double>(bytes) / rate : 0;
}

/// \throws Error (invalid_argument) for figures that do not belong together.
ROUNDPIPE_INLINE void check_adaws(AdawsProblem const& problem) {
  auto const is_time = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
  require(problem.bytes.size() >= 2 && problem.costs.size() == problem.bytes.size(),
          Errc::invalid_argument,
          "AdaWS takes times and bytes of the same two or more layers");
  require(problem.sequences >= 1, Errc::invalid_argument, "a batch has at least one sequence");
  require(is_time(problem.device.upload_bytes_per_second) &&
              is_time(problem.device.download_bytes_per_second) &&
              std::all_of(problem.costs.begin(),
                          problem.costs.end(),
                          [&](LayerCost const& cost) {
                            return is_time(cost.forward_s) && is_time(cost.backward_s) &&
                                   is_time(cost.replaying_s(0));
                          }),
          Errc::invalid_argument,
          "times and rates are finite and at least 0");
}

}  // namespace detail

ROUNDPIPE_INLINE AdawsTimes adaws_times(AdawsProblem const& problem, std::size_t layer) {
  auto const& cost = problem.costs.at(layer);
  auto const& bytes = problem.bytes.at(layer);
  auto const& device = problem.device;
  return {cost.forward_s,
          cost.backward_s,
          detail::adaws_seconds(bytes.parameter_bytes, device.upload_bytes_per_second),
          detail::adaws_seconds(bytes.gradient_bytes, device.download_bytes_per_second)};
}

ROUNDPIPE_INLINE std::string to_string(AdawsConfiguration const& configuration) {
  auto const counted = [](std::size_t count, char const* what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
  };
  char share[32];
  std::snprintf(share, sizeof share, "%.3f", configuration.saved_share);
  return counted(configuration.rounds, "round") + " of " + counted(configuration.chunks, "chunk") +
         ", R_param " + std::to_string(configuration.parameter_entries) + ", R_act " +
         std::to_string(configuration.save_entries) + ", R_grad " +
         std::to_string(configuration.gradient_entries) + ", A_save " + share;
}

ROUNDPIPE_INLINE std::vector<AdawsWindow> adaws_windows(AdawsProblem const& problem) {
  detail::check_adaws(problem);
  auto const layers = problem.bytes.size();
  auto const up = [&](Bytes bytes) {
    return detail::adaws_seconds(bytes, problem.device.upload_bytes_per_second);
  };
  auto const down = [&](Bytes bytes) {
    return detail::adaws_seconds(bytes, problem.device.download_bytes_per_second);
  };
  std::vector<AdawsWindow> windows;
  auto const add = [&](StageKind kind, std::size_t layer) {
    auto const times = adaws_times(problem, layer);
    auto const& bytes = problem.bytes[layer];
    auto const input = layer > 0 ? problem.bytes[layer - 1].boundary_bytes : 0;
    auto const output = bytes.boundary_bytes;
    auto const saved = bytes.saved_bytes;
    auto const recompute_s = saved > 0 ? problem.costs[layer].replaying_s(0) : 0;
    auto& window = windows.emplace_back();
    window.layer = layer;
    window.kind = kind;
    window.parameter_s = times.parameter_s;
    window.up = {up(input), 0};
    window.down = {down(input), 0};  // the gradient of the input
    window.gradient_s = times.gradient_s;
    if (kind == StageKind::forward) {
      window.compute = {times.forward_s, 0};
      window.down = {down(output), down(saved)};
      window.gradient_s = 0;
    } else if (kind == StageKind::fused) {
      window.compute = {times.forward_s + times.backward_s, 0};
    } else {
      window.compute = {times.backward_s + recompute_s, -recompute_s};
      window.up = {up(input) + up(output), up(saved)};
    }
  };
  for (std::size_t i = 0; i + 1 < layers; ++i) {
    add(StageKind::forward, i);
  }
  add(StageKind::fused, layers - 1);
  for (auto i = layers - 1; i-- > 0;) {
    add(StageKind::backward, i);
  }
  return windows;
}

}  // namespace roundpipe
