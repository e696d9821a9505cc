// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a user may choose about a serial training.

#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/loss_scale.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>

namespace roundpipe {

/// The size and the rules of a serial training; what the pipeline has in common with it.
struct SerialOptions {
  BatchShape capacity{};                    ///< What micro-batches fit into.
  std::size_t micro_batches_per_round = 1;  ///< M_R: of a round.
  std::size_t rounds = 1;                   ///< R: of a call.
  double clip_norm = 0;  ///< The largest norm of all gradients together; 0: not clipped.
  std::uint64_t seed = 0;
  int staleness = 0;  ///< 1: iteration T+1 computes with the weights of step T-1.
  StateType state_type = StateType::fp32;
  std::optional<LossScaleOptions> loss_scale{};  ///< None: gradients are not scaled.
  /// Throws at the first value that is NaN or infinite, as \c PipelineOptions::check_finite does.
  bool check_finite = false;
};

/// \p options. \throws Error (invalid_argument) when one is out of its domain.
[[nodiscard]] SerialOptions const& checked(SerialOptions const& options);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/serial/impl/serial_options.ipp>
#endif
