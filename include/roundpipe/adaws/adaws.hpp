// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Solves AdaWS: one device computes layer by layer, and saves what the link can carry.

#include <roundpipe/adaws/adaws_problem.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace roundpipe {

/// What limits A_save.
enum class AdawsLimit : std::uint8_t {
  everything,         ///< Nothing: all is saved.
  forward_upload,     ///< Forward windows: parameters and boundaries.
  forward_download,   ///< Forward windows: saves and boundaries.
  backward_upload,    ///< Backward windows: parameters, saves and boundaries.
  backward_download,  ///< Backward windows: gradients of parameters and boundaries.
  round_upload,       ///< All uploads of a round in all of its windows.
  round_download,     ///< All downloads, likewise.
  device_memory,      ///< No room for entries of saves beside two layers.
  host_memory,        ///< The activations of a round.
};
inline constexpr std::size_t adaws_limit_count = 9;
/// For example "downloads in forward windows".
[[nodiscard]] char const* to_string(AdawsLimit limit) noexcept;

/// What one limit allows.
struct AdawsBound {
  /// The largest A_save. Above 1 or infinite: all. Negative: not even 0.
  double saved_share = std::numeric_limits<double>::infinity();
  /// Of links: how many sequences a round needs for A_save = 0. Infinite: no number is enough.
  double least_sequences = 1;
  /// Of forward and backward windows: the layer in whose window the limit is felt first.
  std::size_t layer = 0;
};

/// The choice, and all that bounds it.
struct AdawsSolution {
  AdawsConfiguration configuration;
  std::size_t window = 0;    ///< W: as many layers have room on the device.
  Bytes layer_bytes = 0;     ///< L_bytes: parameters and gradients of the largest layer.
  Bytes reserved_bytes = 0;  ///< B: all that the device holds besides the window.
  std::array<AdawsBound, adaws_limit_count> bounds;  ///< By limit, for the chosen rounds.

  [[nodiscard]] AdawsBound const& bound(AdawsLimit limit) const {
    return bounds.at(static_cast<std::size_t>(limit));
  }
  /// The limit that allows least.
  [[nodiscard]] AdawsLimit binding() const noexcept;
  /// The number of sequences from which compute hides the copies of a round with A_save = 0.
  [[nodiscard]] double least_sequences() const noexcept;
};
/// The configuration, W, the fewest chunks that hide the copies of a round, and what limits A_save.
[[nodiscard]] std::string to_string(AdawsSolution const& solution);

/// \brief The rounds of equal size with the largest A_save with which no copy stalls compute.
///
/// Of equals, the fewest rounds. B is \c held_bytes and what computing takes: a layer's saves of
/// one sequence and its workspace; two entries of two boundaries in and one out; R_act entries of
/// saves. R_act is 2, or 0 where nothing is saved; R_param = R_grad = W, at most one a layer. The
/// host keeps of a round the boundaries and the saves of all layers but the last. Weights are there
/// when a round begins: the update is not on the device's path.
/// \throws Error (invalid_argument) for fewer than two layers, for figures that do not belong
///         together, and where compute cannot hide the copies of any round; (over_budget) where the
///         device has no room for one sequence, or for a window of two layers beside it, and where
///         the host has no room for the boundaries of a round. The message names the limit.
[[nodiscard]] AdawsSolution solve_adaws(AdawsProblem const& problem);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/adaws/impl/adaws.ipp>
#endif
