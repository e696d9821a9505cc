// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief How fast iterations were.

#include <roundpipe/nn/transformer_config.hpp>
#include <throughput/workload.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace throughput {

/// FLOPs a second of one device at its best.
struct Peak {
  double flops = 0;
  std::string source;
};

struct Speed {
  double iteration_s = 0;  ///< The mean.
  double median_s = 0;
  double tokens_per_second = 0;  ///< By the mean.
  double device_flops = 0;       ///< Of the model, a second and device.
  double mfu = 0;
};

/// \pre \p iterations_s is not empty.
[[nodiscard]] Speed speed_of(std::span<double const> iterations_s,
                             roundpipe::nn::TransformerConfig const& config,
                             Workload const& workload,
                             std::size_t devices,
                             Peak const& peak);

/// "qwen3-1.7b, 28 blocks, 1.72e9 parameters"
[[nodiscard]] std::string model_text(Workload const& workload,
                                     roundpipe::nn::TransformerConfig const& config,
                                     std::uint64_t parameters);
/// The mean, the median, and of how many iterations.
[[nodiscard]] std::string iteration_text(Speed const& speed, std::size_t measured);
/// The model's TFLOP/s of a device, and the share of its peak.
[[nodiscard]] std::string flops_text(Speed const& speed, Peak const& peak);

/// Adds the iterations and what \p speed says of them.
void add_speed(nlohmann::ordered_json& json,
               std::span<double const> iterations_s,
               Speed const& speed,
               Peak const& peak);

}  // namespace throughput
