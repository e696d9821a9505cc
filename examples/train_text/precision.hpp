// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Translates the command line's types and copies into the library's options.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/optim/loss_scale.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>

#include <cstddef>
#include <optional>

#include "options.hpp"

namespace train_text {

/// The type of master copies, of boundaries between layers, and of rounded gradients.
[[nodiscard]] inline roundpipe::DType declared_type(Options const& o) {
  using enum roundpipe::DType;
  return o.precision == "bf16" ? bf16 : o.precision == "fp16" ? f16 : f32;
}

/// The type of optimizer states.
[[nodiscard]] inline roundpipe::StateType state_type(Options const& o) {
  return o.master == "bf16" ? roundpipe::StateType::declared : roundpipe::StateType::fp32;
}

/// A loss scale for fp16 alone, whose small gradients would vanish without it.
[[nodiscard]] inline std::optional<roundpipe::LossScaleOptions> loss_scale(Options const& o) {
  if (o.precision != "fp16") {
    return std::nullopt;
  }
  roundpipe::LossScaleOptions options;
  options.initial = o.loss_scale.value_or(options.initial);
  return options;
}

/// The staleness of the optimizer, and the copies that it needs.
[[nodiscard]] inline roundpipe::EventProtocolOptions event_protocol(Options const& o) {
  return {.staleness = o.sync ? 0 : 1,
          .master_copies = o.master == "single" ? std::size_t{1} : std::size_t{2},
          .gradient_buffers = static_cast<std::size_t>(o.gradient_buffers)};
}

}  // namespace train_text
