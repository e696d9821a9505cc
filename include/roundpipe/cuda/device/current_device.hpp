// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The calling thread's current CUDA device, and guards that put it back.

#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/driver_function.hpp>
#include <roundpipe/cuda/device/error.hpp>

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include <new>

namespace roundpipe::cu {

/// The calling thread's current device: 0 where the thread never chose one. It makes no context.
[[nodiscard]] inline DeviceId current_device() {
  int device = 0;
  check(::cudaGetDevice(&device), "cudaGetDevice");
  return DeviceId(device);
}

/// Makes \p device the calling thread's current one: kernels are launched and memory is allocated
/// there from now on. Costs next to nothing when \p device is the current one already.
inline void make_current(DeviceId device) {
  check(::cudaSetDevice(device.value()), "cudaSetDevice");
}

/// Whether this process has a context on \p device, which takes a few hundred MB of the device. The
/// runtime makes one when a thread first needs it, on the thread's current device.
[[nodiscard]] inline bool has_context(DeviceId device) noexcept {
  static auto const state = detail::driver_function<::PFN_cuDevicePrimaryCtxGetState_v7000>(
      "cuDevicePrimaryCtxGetState", 7000);
  unsigned flags = 0;
  int active = 0;
  return state != nullptr && state(device.value(), &flags, &active) == CUDA_SUCCESS && active != 0;
}

/// Makes a device current for the guard's life, then restores the one before. Where that one has no
/// context, the thread never chose it, and restoring it would make one: the thread keeps the
/// guard's device instead.
class CurrentDevice {
 public:
  explicit CurrentDevice(DeviceId device) {
    auto const before = current_device();
    make_current(device);  // also where it is current by default: the driver's calls need a context
    before_ = before == device ? DeviceId::none() : before;
  }
  /// For destructors: where the driver has shut down, at the program's end, it does nothing.
  CurrentDevice(DeviceId device, std::nothrow_t) noexcept {
    int before = 0;
    if (::cudaGetDevice(&before) == ::cudaSuccess &&
        ::cudaSetDevice(device.value()) == ::cudaSuccess && before != device.value()) {
      before_ = DeviceId(before);
    }
  }
  CurrentDevice(CurrentDevice const&) = delete;
  CurrentDevice& operator=(CurrentDevice const&) = delete;
  ~CurrentDevice() {
    if (before_.valid() && has_context(before_)) {
      (void)::cudaSetDevice(before_.value());
    }
  }

 private:
  DeviceId before_;  // none: nothing to restore
};

}  // namespace roundpipe::cu
