// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/model_shape.hpp>
#include <roundpipe/estimate/roofline.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE double checked_positions(ModelShape const& shape, BatchShape batch) {
  check_shape(shape);
  require(batch.rows >= 1 && batch.length >= 1,
          Errc::invalid_argument,
          "a batch needs at least one sequence of at least one position");
  return as_double(batch.rows) * as_double(batch.length);
}

ROUNDPIPE_INLINE double layer_parameters(ModelShape const& shape, std::int64_t experts) {
  check_shape(shape);
  auto const h = as_double(shape.hidden);
  return h * (2 * h + 2 * as_double(shape.kv_width()) +
              3 * as_double(experts) * as_double(shape.intermediate));
}

/// E, the number of router logits of a position; 0 in a dense layer.
[[nodiscard]] ROUNDPIPE_INLINE double router_width(ModelShape const& shape) noexcept {
  return shape.routes() ? as_double(shape.experts) : 0;
}

ROUNDPIPE_INLINE double checkpoint(ModelShape const& shape, BatchShape batch) {
  return bf16_bytes * checked_positions(shape, batch) *
         (as_double(shape.hidden) + router_width(shape));
}

ROUNDPIPE_INLINE Bytes whole_bytes(double bytes) {
  require(bytes < 0x1p63, Errc::invalid_argument, "a model takes more than 2^63 bytes");
  return static_cast<Bytes>(bytes);
}

ROUNDPIPE_INLINE double known_rate(double rate, DeviceProperties const& device, char const* name) {
  if (!(std::isfinite(rate) && rate > 0)) {
    throw Error(Errc::invalid_argument,
                "device '" + device.name + "' has no " + name + ", which costs depend on");
  }
  return rate;
}

ROUNDPIPE_INLINE double known_peak(DeviceProperties const& device) {
  return known_rate(device.flops_per_second, device, "flops_per_second");
}

ROUNDPIPE_INLINE double known_upload(DeviceProperties const& device) {
  return known_rate(device.upload_bytes_per_second, device, "upload_bytes_per_second");
}

}  // namespace detail

ROUNDPIPE_INLINE double layer_parameters(ModelShape const& shape) {
  return detail::layer_parameters(shape, shape.experts);
}

ROUNDPIPE_INLINE double active_layer_parameters(ModelShape const& shape) {
  return detail::layer_parameters(shape, shape.active_experts);
}

ROUNDPIPE_INLINE double head_parameters(ModelShape const& shape) {
  check_shape(shape);
  return detail::as_double(shape.hidden) * detail::as_double(shape.vocabulary);
}

ROUNDPIPE_INLINE Bytes layer_parameter_bytes(ModelShape const& shape) {
  return detail::whole_bytes(detail::bf16_bytes * layer_parameters(shape));
}

ROUNDPIPE_INLINE FlopCount layer_work(ModelShape const& shape, BatchShape batch) {
  auto const positions = detail::checked_positions(shape, batch);
  auto const products = 2 * positions * active_layer_parameters(shape);
  auto const attention =
      4 * positions * detail::as_double(batch.length) * detail::as_double(shape.hidden);
  return {products + attention, 2 * (products + attention)};
}

ROUNDPIPE_INLINE FlopCount head_work(ModelShape const& shape, BatchShape batch) {
  auto const product = 2 * detail::checked_positions(shape, batch) * head_parameters(shape);
  return {product, 2 * product};
}

ROUNDPIPE_INLINE Bytes activation_bytes(ModelShape const& shape, BatchShape batch) {
  auto const positions = detail::checked_positions(shape, batch);
  auto const width =
      6 * detail::as_double(shape.hidden) + 2 * detail::as_double(shape.kv_width()) +
      3 * detail::as_double(shape.active_experts) * detail::as_double(shape.intermediate) +
      detail::router_width(shape);
  return detail::whole_bytes(detail::bf16_bytes * positions * width);
}

ROUNDPIPE_INLINE Bytes checkpoint_bytes(ModelShape const& shape, BatchShape batch) {
  return detail::whole_bytes(detail::checkpoint(shape, batch));
}

ROUNDPIPE_INLINE double reload_seconds(ModelShape const& shape,
                                       DeviceProperties const& device,
                                       BatchShape batch) {
  return static_cast<double>(activation_bytes(shape, batch)) / detail::known_upload(device);
}

ROUNDPIPE_INLINE double recompute_seconds(ModelShape const& shape,
                                          DeviceProperties const& device,
                                          BatchShape batch) {
  return layer_work(shape, batch).forward_flops / detail::known_peak(device);
}

ROUNDPIPE_INLINE double operational_intensity(ModelShape const& shape, BatchShape batch) {
  return layer_work(shape, batch).forward_flops /
         (detail::bf16_bytes * layer_parameters(shape) + detail::checkpoint(shape, batch));
}

ROUNDPIPE_INLINE double ridge_point(DeviceProperties const& device) {
  return detail::known_peak(device) / detail::known_upload(device);
}

ROUNDPIPE_INLINE std::optional<std::int64_t> least_batch(ModelShape const& shape,
                                                         DeviceProperties const& device,
                                                         std::int64_t length) {
  auto const ridge = ridge_point(device);
  constexpr std::int64_t limit = std::numeric_limits<std::int32_t>::max();
  std::int64_t least = 1;
  for (auto end = limit; least < end;) {
    auto const rows = std::midpoint(least, end);
    if (operational_intensity(shape, {rows, length}) < ridge) {
      least = rows + 1;
    } else {
      end = rows;
    }
  }
  return least == limit ? std::nullopt : std::optional(least);
}

}  // namespace roundpipe
