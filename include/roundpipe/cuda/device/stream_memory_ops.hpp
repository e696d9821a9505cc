// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Waits of a stream for a number in host memory, by the driver's stream memory operations.

#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/driver_function.hpp>
#include <roundpipe/cuda/device/error.hpp>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace roundpipe::cu::detail {

/// The driver's functions for them, which hold no state.
class StreamMemoryOps {
 public:
  [[nodiscard]] static StreamMemoryOps const& instance() {
    static StreamMemoryOps const ops;
    return ops;
  }

  /// Whether streams of \p device can wait for a 64-bit number.
  [[nodiscard]] bool supported(DeviceId device) const noexcept {
    int yes = 0;
    return wait_ != nullptr && attribute_ != nullptr &&
           attribute_(&yes, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device.value()) ==
               CUDA_SUCCESS &&
           yes != 0;
  }

  /// \p stream, of the current device, waits until the number at \p device_address is at least
  /// \p value, by the sign of the difference. Precondition: \ref supported.
  void wait(::cudaStream_t stream, void* device_address, std::uint64_t value) const {
    auto const status = wait_(
        stream, reinterpret_cast<::CUdeviceptr>(device_address), value, CU_STREAM_WAIT_VALUE_GEQ);
    check(static_cast<::cudaError_t>(status), "cuStreamWaitValue64");  // both enums agree
  }

 private:
  StreamMemoryOps() noexcept = default;

  ::PFN_cuDeviceGetAttribute_v2000 attribute_ =
      driver_function<::PFN_cuDeviceGetAttribute_v2000>("cuDeviceGetAttribute", 2000);
  ::PFN_cuStreamWaitValue64_v11070 wait_ =
      driver_function<::PFN_cuStreamWaitValue64_v11070>("cuStreamWaitValue64", 11070);
};

}  // namespace roundpipe::cu::detail
