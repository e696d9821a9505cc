// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Waits of a stream for a number in host memory, by the driver's stream memory operations.

#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/error.hpp>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cudaTypedefs.h>

namespace roundpipe::cu::detail {

/// Driver functions, found at run time, so that programs do not link the driver.
class StreamMemoryOps {
 public:
  [[nodiscard]] static StreamMemoryOps const& instance() {
    static StreamMemoryOps const ops;
    return ops;
  }

  /// Whether streams of \p device can wait for 64-bit numbers.
  [[nodiscard]] bool supported(DeviceId device) const noexcept {
    int yes = 0;
    return wait_ != nullptr && attribute_ != nullptr &&
           attribute_(&yes, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device.value()) ==
               CUDA_SUCCESS &&
           yes != 0;
  }

  /// Lets \p stream wait until the number at \p device_address is at least \p value (by the sign of
  /// the difference). Precondition: \ref supported.
  void wait(::cudaStream_t stream, void* device_address, std::uint64_t value) const {
    auto const status = wait_(
        stream, reinterpret_cast<::CUdeviceptr>(device_address), value, CU_STREAM_WAIT_VALUE_GEQ);
    check(static_cast<::cudaError_t>(status), "cuStreamWaitValue64");  // both enums agree
  }

 private:
  StreamMemoryOps() noexcept {
    find("cuDeviceGetAttribute", 2000, attribute_);
    find("cuStreamWaitValue64", 11070, wait_);
  }

  template <class F>
  static void find(char const* name, unsigned version, F& function) noexcept {
    void* address = nullptr;
    ::cudaDriverEntryPointQueryResult result{};
    if (::cudaGetDriverEntryPointByVersion(name, &address, version, ::cudaEnableDefault, &result) ==
            ::cudaSuccess &&
        result == ::cudaDriverEntryPointSuccess) {
      function = reinterpret_cast<F>(address);
    } else {
      (void)::cudaGetLastError();
    }
  }

  ::PFN_cuDeviceGetAttribute_v2000 attribute_ = nullptr;
  ::PFN_cuStreamWaitValue64_v11070 wait_ = nullptr;
};

}  // namespace roundpipe::cu::detail
