// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A device and its link as figures, from a datasheet or a measurement.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <string>

namespace roundpipe {

/// Plain data for plans without a machine. \c device is what a backend says of a device that is
/// there, so whatever takes the one takes the other.
struct Hardware {
  DeviceProperties device;     ///< FLOPs: the peak of dense bf16 products.
  double latency_seconds = 0;  ///< Of every copy between host and device.
  std::string source;          ///< Where the figures are from.
};

/// \throws Error (invalid_argument) for hardware without a name, memory, or one of the four rates
///         (a plan without a machine cannot do with "unknown"), or with an impossible latency.
void check_hardware(Hardware const& hardware);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/estimate/impl/hardware.ipp>
#endif
