// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The CUDA devices of this machine: how many there are, and what each one is.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/error.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace roundpipe::cu {

namespace detail {

/// What the runtime answers when it counts devices, and the CUDA versions of the driver (0: there
/// is none) and of the toolkit that built the program, as the runtime numbers them.
struct DeviceAnswer {
  ::cudaError_t status = ::cudaSuccess;
  int count = 0;
  int driver = 0;
  int toolkit = CUDART_VERSION;
};

/// \returns the count of \p answer. \throws Error as \ref device_count.
[[nodiscard]] inline std::size_t usable_devices(DeviceAnswer const& answer) {
  if (answer.status == ::cudaErrorInsufficientDriver) {
    auto const version = [](int v) {
      return std::to_string(v / 1000) + '.' + std::to_string(v % 1000 / 10);
    };
    throw Error(make_error_code(answer.status),
                answer.driver == 0
                    ? "there is no CUDA driver on this machine"
                    : "the CUDA driver is too old: it supports CUDA " + version(answer.driver) +
                          ", and this program was built with " + version(answer.toolkit));
  }
  if (answer.status == ::cudaErrorNoDevice ||
      (answer.status == ::cudaSuccess && answer.count == 0)) {
    throw Error(make_error_code(::cudaErrorNoDevice), "there is no CUDA device on this machine");
  }
  check(answer.status, "cudaGetDeviceCount");
  return static_cast<std::size_t>(answer.count);
}

}  // namespace detail

/// How many devices this process sees.
/// \throws Error (a code equal to \c std::errc::no_such_device) when there is none, or when the
///         driver is missing or older than the toolkit that built this program.
[[nodiscard]] inline std::size_t device_count() {
  detail::DeviceAnswer answer;
  answer.status = ::cudaGetDeviceCount(&answer.count);
  if (answer.status != ::cudaSuccess) {
    (void)::cudaGetLastError();
    (void)::cudaDriverGetVersion(&answer.driver);
  }
  return detail::usable_devices(answer);
}

/// What the driver says of a device's memory.
struct MemoryInfo {
  Bytes free_bytes = 0;  ///< What no process uses.
  Bytes total_bytes = 0;
};

[[nodiscard]] inline MemoryInfo memory_info(DeviceId device) {
  CurrentDevice const current(device);
  MemoryInfo info;
  check(::cudaMemGetInfo(&info.free_bytes, &info.total_bytes), "cudaMemGetInfo");
  return info;
}

[[nodiscard]] inline int attribute(DeviceId device, ::cudaDeviceAttr which) {
  int value = 0;
  check(::cudaDeviceGetAttribute(&value, which, device.value()), "cudaDeviceGetAttribute");
  return value;
}

/// The compute capability, major times 10 plus minor: 80 for 8.0.
[[nodiscard]] inline int compute_capability(DeviceId device) {
  return 10 * attribute(device, ::cudaDevAttrComputeCapabilityMajor) +
         attribute(device, ::cudaDevAttrComputeCapabilityMinor);
}

/// Whether kernels and copies on \p device reach the memory of \p peer directly.
[[nodiscard]] inline bool can_access_peer(DeviceId device, DeviceId peer) {
  int yes = 0;
  check(::cudaDeviceCanAccessPeer(&yes, device.value(), peer.value()), "cudaDeviceCanAccessPeer");
  return yes != 0;
}

namespace detail {

/// Dense bf16 FLOPs of one multiprocessor in one clock, summed in fp32, from the vendor's
/// architecture papers (A100, GA102, AD102, H100, GB100, GB202).
[[nodiscard]] inline double matrix_flops_per_clock(int capability) noexcept {
  switch (capability) {
    case 80:
      return 2048;
    case 90:
      return 4096;
    case 100:
    case 103:
      return 8192;
    default:
      return 512;  // the consumer parts: 8.6, 8.9, 12.0
  }
}

}  // namespace detail

/// Name, free memory and rough peaks of \p device. \ref measure_link measures its link.
[[nodiscard]] inline DeviceProperties device_properties(DeviceId device) {
  ::cudaDeviceProp properties{};
  check(::cudaGetDeviceProperties(&properties, device.value()), "cudaGetDeviceProperties");
  auto const hertz = 1e3 * attribute(device, ::cudaDevAttrClockRate);
  auto const memory_hertz = 1e3 * attribute(device, ::cudaDevAttrMemoryClockRate);
  auto const bus_bytes = attribute(device, ::cudaDevAttrGlobalMemoryBusWidth) / 8.0;
  DeviceProperties result;
  result.name = properties.name;
  result.memory_bytes = memory_info(device).free_bytes;
  result.flops_per_second = hertz * properties.multiProcessorCount *
                            detail::matrix_flops_per_clock(compute_capability(device));
  result.memory_bytes_per_second = 2 * memory_hertz * bus_bytes;
  result.streams_keep_engines = true;  // see docs/03_transfers.md
  return result;
}

}  // namespace roundpipe::cu
