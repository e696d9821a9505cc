// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/hardware.hpp>

#include <cmath>

namespace roundpipe {

ROUNDPIPE_INLINE void check_hardware(Hardware const& hardware) {
  auto const& device = hardware.device;
  auto const expect = [&](bool holds, char const* what) {
    if (!holds) {
      throw Error(Errc::invalid_argument, "hardware '" + device.name + "': " + what);
    }
  };
  auto const positive = [](double rate) { return std::isfinite(rate) && rate > 0; };
  expect(!device.name.empty(), "it has no name");
  expect(device.memory_bytes > 0, "memory_bytes must be positive");
  expect(positive(device.flops_per_second), "flops_per_second must be positive");
  expect(positive(device.memory_bytes_per_second), "memory_bytes_per_second must be positive");
  expect(positive(device.upload_bytes_per_second), "upload_bytes_per_second must be positive");
  expect(positive(device.download_bytes_per_second), "download_bytes_per_second must be positive");
  expect(std::isfinite(hardware.latency_seconds) && hardware.latency_seconds >= 0,
         "latency_seconds must not be negative");
  expect(hardware.sustained_flops_per_second >= 0 &&
             hardware.sustained_flops_per_second <= device.flops_per_second,
         "sustained_flops_per_second must lie between 0 and flops_per_second");
}

}  // namespace roundpipe
