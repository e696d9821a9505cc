// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Small CUDA backends for tests: one or two workers on the first device; and whether there
/// are two.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/cuda_options.hpp>

#include <cuda_runtime_api.h>

namespace roundpipe::test {

inline constexpr DeviceId d0{0};
inline constexpr DeviceId d1{1};

/// Creates no context.
inline bool has_two_devices() {
  int count = 0;
  return ::cudaGetDeviceCount(&count) == cudaSuccess && count > 1;
}

/// Two workers that share the first device: their streams wait for fences on the host.
inline cu::CudaBackendOptions two_workers() {
  cu::CudaBackendOptions options;
  options.devices = {d0, d0};
  options.device_memory_bytes = 64_MiB;
  return options;
}

/// One worker, whose streams may wait on the device for later work of the host.
inline cu::CudaBackendOptions one_worker() {
  auto options = two_workers();
  options.devices = {d0};
  return options;
}

}  // namespace roundpipe::test
