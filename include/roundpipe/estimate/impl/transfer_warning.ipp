// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/estimate/roofline.hpp>
#include <roundpipe/estimate/transfer_warning.hpp>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>

namespace roundpipe {

namespace detail {

/// For example "13.6 ms".
[[nodiscard]] ROUNDPIPE_INLINE std::string in_milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g ms", 1e3 * seconds);
  return text;
}

}  // namespace detail

ROUNDPIPE_INLINE std::optional<std::string> transfer_warning(ModelShape const& shape,
                                                             DeviceProperties const& device,
                                                             BatchShape micro_batch,
                                                             std::int64_t micro_batches_per_round) {
  static_cast<void>(detail::checked_positions(shape, micro_batch));
  require(micro_batches_per_round >= 1,
          Errc::invalid_argument,
          "a round needs at least one micro-batch");
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  require(micro_batch.rows <= most / micro_batches_per_round,
          Errc::invalid_argument,
          "a round has more sequences than can be counted");
  BatchShape const round{micro_batches_per_round * micro_batch.rows, micro_batch.length};
  auto const ridge = ridge_point(device);
  if (operational_intensity(shape, round) >= ridge) {
    return std::nullopt;
  }
  auto const upload = detail::known_upload(device);
  auto const parameters = static_cast<double>(layer_parameter_bytes(shape)) / upload;
  auto const checkpoints = detail::checkpoint(shape, round) / upload;
  auto const least = least_batch(shape, device, round.length);
  auto const each = std::to_string(micro_batch.rows) + " x " + std::to_string(round.length);
  return "the parameters of a layer take " + detail::in_milliseconds(parameters) +
         " to upload and the checkpoints of a round " + detail::in_milliseconds(checkpoints) +
         ", its forward " + detail::in_milliseconds(recompute_seconds(shape, device, round)) +
         " for " + std::to_string(micro_batches_per_round) +
         (micro_batches_per_round == 1 ? " micro-batch of " : " micro-batches of ") + each +
         " tokens: " +
         (least ? "transfers hide from " + std::to_string(*least) + " sequences a round on"
                : "no number of sequences hides the transfers");
}

}  // namespace roundpipe
