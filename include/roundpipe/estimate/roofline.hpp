// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief FLOPs and bytes of transformer layers, and from which batch on uploads hide behind them.
///
/// After appendices B and C of RoundPipe (arXiv:2604.27085). Letters as there: s positions of a
/// sequence, b sequences, and those of \ref ModelShape. Everything is bf16, two bytes a number. The
/// queries are taken to be h wide, as the paper does also where heads times head size is not h.
///
/// \c BatchShape gives b as rows and s as length. Functions throw Error (invalid_argument) for a
/// shape that makes no transformer, extents below 1, and counts beyond 2^63 bytes.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/model_shape.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <ranges>
#include <string>

namespace roundpipe {

namespace detail {

inline constexpr double bf16_bytes = 2;

[[nodiscard]] constexpr double as_double(std::int64_t n) noexcept {
  return static_cast<double>(n);
}

/// b s. \throws Error (invalid_argument) as this header says.
[[nodiscard]] inline double checked_positions(ModelShape const& shape, BatchShape batch) {
  check_shape(shape);
  require(batch.rows >= 1 && batch.length >= 1,
          Errc::invalid_argument,
          "a batch has at least one sequence of at least one position");
  return as_double(batch.rows) * as_double(batch.length);
}

/// 2 h^2 + 2 h h_kv + 3 experts h f: queries, output, keys, values; gate, up, down.
[[nodiscard]] inline double layer_parameters(ModelShape const& shape, std::int64_t experts) {
  check_shape(shape);
  auto const h = as_double(shape.hidden);
  return h * (2 * h + 2 * as_double(shape.kv_width()) +
              3 * as_double(experts) * as_double(shape.intermediate));
}

/// E, the logits of a position's router; 0 in a dense layer.
[[nodiscard]] inline double router_width(ModelShape const& shape) noexcept {
  return shape.routes() ? as_double(shape.experts) : 0;
}

/// The bytes that recomputation reloads: 2 b s (h + E).
[[nodiscard]] inline double checkpoint(ModelShape const& shape, BatchShape batch) {
  return bf16_bytes * checked_positions(shape, batch) *
         (as_double(shape.hidden) + router_width(shape));
}

[[nodiscard]] inline Bytes whole_bytes(double bytes) {
  require(bytes < 0x1p63, Errc::invalid_argument, "a model takes more than 2^63 bytes");
  return static_cast<Bytes>(bytes);
}

/// \p rate, unless \p device does not know it.
[[nodiscard]] inline double known_rate(double rate,
                                       DeviceProperties const& device,
                                       char const* name) {
  if (!(std::isfinite(rate) && rate > 0)) {
    throw Error(Errc::invalid_argument,
                "device '" + device.name + "' has no " + name + ", which costs are made of");
  }
  return rate;
}

[[nodiscard]] inline double known_peak(DeviceProperties const& device) {
  return known_rate(device.flops_per_second, device, "flops_per_second");
}
[[nodiscard]] inline double known_upload(DeviceProperties const& device) {
  return known_rate(device.upload_bytes_per_second, device, "upload_bytes_per_second");
}

}  // namespace detail

/// The parameters of one layer: 2 h^2 + 2 h h_kv + 3 E h f.
[[nodiscard]] inline double layer_parameters(ModelShape const& shape) {
  return detail::layer_parameters(shape, shape.experts);
}

/// Those of them that a position meets: k experts in place of E.
[[nodiscard]] inline double active_layer_parameters(ModelShape const& shape) {
  return detail::layer_parameters(shape, shape.active_experts);
}

/// The parameters of the language-model head: h V. The embedding's table has as many.
[[nodiscard]] inline double head_parameters(ModelShape const& shape) {
  check_shape(shape);
  return detail::as_double(shape.hidden) * detail::as_double(shape.vocabulary);
}

/// What one layer uploads before it runs: two bytes a parameter.
[[nodiscard]] inline Bytes layer_parameter_bytes(ModelShape const& shape) {
  return detail::whole_bytes(detail::bf16_bytes * layer_parameters(shape));
}

/// FLOPs of one layer. Forward: 2 b s a position's parameters, and 4 s^2 b h of attention, whose
/// masked half counts too. The backward takes twice as many.
[[nodiscard]] inline FlopCount layer_work(ModelShape const& shape, BatchShape batch) {
  auto const positions = detail::checked_positions(shape, batch);
  auto const products = 2 * positions * active_layer_parameters(shape);
  auto const attention =
      4 * positions * detail::as_double(batch.length) * detail::as_double(shape.hidden);
  return {products + attention, 2 * (products + attention)};
}

/// FLOPs of the language-model head: 2 b s h V forward, twice as many backward. (The embedding
/// looks up rows: none to speak of.)
[[nodiscard]] inline FlopCount head_work(ModelShape const& shape, BatchShape batch) {
  auto const product = 2 * detail::checked_positions(shape, batch) * head_parameters(shape);
  return {product, 2 * product};
}

/// The activations of one layer that its backward needs, the layer's input among them:
/// 2 b s (6 h + 2 h_kv + 3 k f + E), the last term with a router only.
[[nodiscard]] inline Bytes activation_bytes(ModelShape const& shape, BatchShape batch) {
  auto const positions = detail::checked_positions(shape, batch);
  auto const width =
      6 * detail::as_double(shape.hidden) + 2 * detail::as_double(shape.kv_width()) +
      3 * detail::as_double(shape.active_experts) * detail::as_double(shape.intermediate) +
      detail::router_width(shape);
  return detail::whole_bytes(detail::bf16_bytes * positions * width);
}

/// What recomputing a layer reloads in place of its activations: its input, and with a router the
/// logits, 2 b s (h + E).
[[nodiscard]] inline Bytes checkpoint_bytes(ModelShape const& shape, BatchShape batch) {
  return detail::whole_bytes(detail::checkpoint(shape, batch));
}

/// The time to upload a layer's activations, had they been kept on the host.
/// \throws Error (invalid_argument) also when \p device does not know its upload rate.
[[nodiscard]] inline double reload_seconds(ModelShape const& shape,
                                           DeviceProperties const& device,
                                           BatchShape batch) {
  return static_cast<double>(activation_bytes(shape, batch)) / detail::known_upload(device);
}

/// The time to compute them again: a layer's forward at the peak.
/// \throws Error (invalid_argument) also when \p device does not know its peak.
[[nodiscard]] inline double recompute_seconds(ModelShape const& shape,
                                              DeviceProperties const& device,
                                              BatchShape batch) {
  return layer_work(shape, batch).forward_flops / detail::known_peak(device);
}

/// FLOPs that a layer's forward does for each byte that it uploads: its parameters, once, and the
/// checkpoints of \p batch. These are all sequences that the parameters serve while they are there:
/// the micro-batches of a round together, M_R times the rows of one.
[[nodiscard]] inline double operational_intensity(ModelShape const& shape, BatchShape batch) {
  return layer_work(shape, batch).forward_flops /
         (detail::bf16_bytes * layer_parameters(shape) + detail::checkpoint(shape, batch));
}

/// The FLOPs that \p device can do while a byte is uploaded. Where the operational intensity is
/// at least as high, uploads hide behind compute.
/// \throws Error (invalid_argument) when \p device does not know its peak or its upload rate.
[[nodiscard]] inline double ridge_point(DeviceProperties const& device) {
  return detail::known_peak(device) / detail::known_upload(device);
}

/// The smallest number of sequences of \p length positions in a round whose operational intensity
/// reaches the ridge point; none when fewer than 2^31 sequences do not.
///
/// With F the FLOPs and C the checkpoint of one sequence and P the bytes of the parameters, it is
/// the smallest b with P <= b (F / ridge - C).
/// \throws Error (invalid_argument) also when \p device does not know its peak or its upload rate.
[[nodiscard]] inline std::optional<std::int64_t> least_batch(ModelShape const& shape,
                                                             DeviceProperties const& device,
                                                             std::int64_t length) {
  auto const ridge = ridge_point(device);
  auto const candidates =
      std::views::iota(std::int32_t{1}, std::numeric_limits<std::int32_t>::max());
  auto const least = std::ranges::partition_point(candidates, [&](std::int32_t rows) {
    return operational_intensity(shape, {rows, length}) < ridge;
  });
  return least == candidates.end() ? std::nullopt : std::optional<std::int64_t>(*least);
}

}  // namespace roundpipe
