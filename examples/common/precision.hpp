// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Translates the command line's types and copies into the library's options.

#include <common/command_line.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/optim/loss_scale.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace examples {

/// The types of a training, and the copies that it keeps.
struct PrecisionOptions {
  std::string precision = "fp32";
  std::string master = "double";
  std::optional<double> loss_scale;  ///< Default: the library's; only for fp16.
  bool sync = false;
  std::int64_t gradient_buffers = 1;
};

/// \throws roundpipe::Error (invalid_argument) for options that do not go together.
inline void check_precision(PrecisionOptions const& o) {
  if (o.master == "bf16" && o.precision != "bf16") {
    refuse("--master bf16 keeps all weights as bf16: it needs --precision bf16, not " +
           o.precision);
  }
  if (o.loss_scale && o.precision != "fp16") {
    refuse("--loss-scale is for --precision fp16; " + o.precision + " needs none");
  }
  if (o.loss_scale && !(std::isfinite(*o.loss_scale) && *o.loss_scale >= 1)) {
    refuse("--loss-scale must be a finite number, at least 1");
  }
}

/// The type that the command line calls \p name.
[[nodiscard]] inline roundpipe::DType type_named(std::string const& name) {
  using enum roundpipe::DType;
  return name == "bf16" ? bf16 : name == "fp16" ? f16 : f32;
}

/// The type of master copies, of boundaries between layers, and of rounded gradients.
[[nodiscard]] inline roundpipe::DType declared_type(PrecisionOptions const& o) {
  return type_named(o.precision);
}

/// The type of optimizer states.
[[nodiscard]] inline roundpipe::StateType state_type(PrecisionOptions const& o) {
  return o.master == "bf16" ? roundpipe::StateType::declared : roundpipe::StateType::fp32;
}

/// A loss scale for fp16 alone, whose small gradients would vanish without it.
[[nodiscard]] inline std::optional<roundpipe::LossScaleOptions> loss_scale(
    PrecisionOptions const& o) {
  if (o.precision != "fp16") {
    return std::nullopt;
  }
  roundpipe::LossScaleOptions options;
  options.initial = o.loss_scale.value_or(options.initial);
  return options;
}

/// The staleness of the optimizer, and the copies that it needs.
[[nodiscard]] inline roundpipe::EventProtocolOptions event_protocol(PrecisionOptions const& o) {
  return {.staleness = o.sync ? 0 : 1,
          .master_copies = o.master == "single" ? std::size_t{1} : std::size_t{2},
          .gradient_buffers = static_cast<std::size_t>(o.gradient_buffers)};
}

}  // namespace examples
