// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The figures of a device and its link, from a datasheet or a measurement.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>

#include <string>

namespace roundpipe {

/// Plain data for plans without a machine. \c device has the form in which a backend describes an
/// existing device, so functions accept either.
struct Hardware {
  DeviceProperties device;     ///< FLOPs: the peak of dense bf16 products.
  double latency_seconds = 0;  ///< Of every copy between host and device.
  std::string source;          ///< The origin of the figures.
  /// What layers' products reach in training; 0: unknown.
  double sustained_flops_per_second = 0;
};

/// \throws Error (invalid_argument) for hardware without a name, memory, or one of the four rates
/// (a plan without a machine cannot use "unknown"), with an invalid latency, or with a sustained
/// rate above the peak.
void check_hardware(Hardware const& hardware);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/estimate/impl/hardware.ipp>
#endif
