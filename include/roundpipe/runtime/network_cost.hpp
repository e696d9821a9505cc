// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Measures the network of several ranks, for forecasts.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/model/cost_model.hpp>

namespace roundpipe {

/// What an exchange of all ranks took in which each received \c received bytes.
struct MeasuredExchange {
  Bytes received = 0;
  double seconds = 0;
};

/// The network on which exchanges take what \p small and \p large, which has more bytes, took: by a
/// line through both. A large one that took no longer than a small one shows no rate.
[[nodiscard]] NetworkCost fit_network(MeasuredExchange small, MeasuredExchange large);

/// The host memory with which \ref measure_network measures fast networks well.
inline constexpr Bytes network_probe_bytes = 32_MiB;

/// An operation of all ranks: measures exchanges of a byte each, and larger ones until they take 20
/// ms more, or as long as the smallest \p memory of a rank has room. The fastest of a few counts.
/// \returns the same on all ranks; no time where there is one.
/// \throws Error as the group does; (invalid_argument) for less memory than a byte a rank.
[[nodiscard]] NetworkCost measure_network(AnyProcessGroup group, HostBytes memory);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/network_cost.ipp>
#endif
