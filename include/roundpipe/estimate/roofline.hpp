// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief FLOPs and bytes of transformer layers, and the batch size from which compute hides
/// uploads.
/// After appendices B and C of RoundPipe (arXiv:2604.27085), with the paper's letters: s positions
/// of a sequence, b sequences, and the letters of \ref ModelShape. Everything is bf16, two bytes a
/// number. Like the paper, the formulas assume queries of width h, even where heads times head size
/// is not h.
/// \c BatchShape gives b as rows and s as length. Functions throw Error (invalid_argument) for an
/// invalid shape, extents below 1, and counts beyond 2^63 bytes.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/model_shape.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace roundpipe {

namespace detail {

inline constexpr double bf16_bytes = 2;

[[nodiscard]] constexpr double as_double(std::int64_t n) noexcept {
  return static_cast<double>(n);
}

/// b s. \throws Error (invalid_argument) as described above.
[[nodiscard]] double checked_positions(ModelShape const& shape, BatchShape batch);

/// 2 h^2 + 2 h h_kv + 3 experts h f: queries, output, keys, values; gate, up, down.
[[nodiscard]] double layer_parameters(ModelShape const& shape, std::int64_t experts);

/// The bytes that recomputation reloads: 2 b s (h + E).
[[nodiscard]] double checkpoint(ModelShape const& shape, BatchShape batch);

[[nodiscard]] Bytes whole_bytes(double bytes);

/// \p rate. \throws Error (invalid_argument) when \p device does not know it.
[[nodiscard]] double known_rate(double rate, DeviceProperties const& device, char const* name);

[[nodiscard]] double known_peak(DeviceProperties const& device);
[[nodiscard]] double known_upload(DeviceProperties const& device);

}  // namespace detail

/// The parameters of one layer: 2 h^2 + 2 h h_kv + 3 E h f.
[[nodiscard]] double layer_parameters(ModelShape const& shape);

/// The parameters that a position uses: k experts instead of E.
[[nodiscard]] double active_layer_parameters(ModelShape const& shape);

/// The parameters of the language-model head: h V. The embedding's table has the same number.
[[nodiscard]] double head_parameters(ModelShape const& shape);

/// The bytes that one layer uploads before it runs: two for each parameter.
[[nodiscard]] Bytes layer_parameter_bytes(ModelShape const& shape);

/// FLOPs of one layer. Forward: 2 b s times the parameters of a position, plus 4 s^2 b h of
/// attention, including its masked half. The backward takes twice as many.
[[nodiscard]] FlopCount layer_work(ModelShape const& shape, BatchShape batch);

/// FLOPs of the language-model head: 2 b s h V forward, twice as many backward. (The embedding only
/// looks up rows, which takes almost none.)
[[nodiscard]] FlopCount head_work(ModelShape const& shape, BatchShape batch);

/// The activations of one layer that its backward needs, including the layer's input: 2 b s (6 h +
/// 2 h_kv + 3 k f + E); the last term exists with a router only.
[[nodiscard]] Bytes activation_bytes(ModelShape const& shape, BatchShape batch);

/// The bytes that recomputing a layer reloads instead of its activations: its input, and with a
/// router the logits, 2 b s (h + E).
[[nodiscard]] Bytes checkpoint_bytes(ModelShape const& shape, BatchShape batch);

/// The time to upload a layer's activations if the host had kept them.
/// \throws Error (invalid_argument) also when \p device does not know its upload rate.
[[nodiscard]] double reload_seconds(ModelShape const& shape,
                                    DeviceProperties const& device,
                                    BatchShape batch);

/// The time to recompute the activations: a layer's forward at the peak.
/// \throws Error (invalid_argument) also when \p device does not know its peak.
[[nodiscard]] double recompute_seconds(ModelShape const& shape,
                                       DeviceProperties const& device,
                                       BatchShape batch);

/// The FLOPs of a layer's forward for each byte that the layer uploads: its parameters, once, and
/// the checkpoints of \p batch. \p batch covers all sequences that use one upload of the
/// parameters: the micro-batches of a round together, M_R times the rows of one micro-batch.
[[nodiscard]] double operational_intensity(ModelShape const& shape, BatchShape batch);

/// The FLOPs that \p device can do while it uploads a byte. When the operational intensity is at
/// least as high, compute hides uploads.
/// \throws Error (invalid_argument) when \p device does not know its peak or its upload rate.
[[nodiscard]] double ridge_point(DeviceProperties const& device);

/// The smallest number of sequences of \p length positions in a round whose operational intensity
/// reaches the ridge point; none when no number below 2^31 does.
/// With F the FLOPs and C the checkpoint of one sequence and P the bytes of the parameters, this is
/// the smallest b with P <= b (F / ridge - C).
/// \throws Error (invalid_argument) also when \p device does not know its peak or its upload rate.
[[nodiscard]] std::optional<std::int64_t> least_batch(ModelShape const& shape,
                                                      DeviceProperties const& device,
                                                      std::int64_t length);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/estimate/impl/roofline.ipp>
#endif
