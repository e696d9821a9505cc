// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Kernels in PTX, which the driver compiles for the device at hand, so that the backend is
/// complete for programs that nvcc never sees.

#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/error.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <string>

namespace roundpipe::cu::detail {

/// Loaded kernels, for all devices.
class PtxLibrary {
 public:
  /// Loads \p entries, all `.entry` functions; the driver compiles them for a device at their first
  /// launch there. Some device with a context must be current.
  explicit PtxLibrary(std::string const& entries) : device_(current_device()) {
    auto const code = ".version 7.0\n.target sm_80\n.address_size 64\n" + entries;
    check(::cudaLibraryLoadData(&library_, code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0),
          "cudaLibraryLoadData");
  }
  PtxLibrary(PtxLibrary const&) = delete;
  PtxLibrary& operator=(PtxLibrary const&) = delete;
  /// No launch may be under way.
  ~PtxLibrary() {
    CurrentDevice const current(device_, std::nothrow);
    (void)::cudaLibraryUnload(library_);
  }

  /// The kernel of this name, which lives as long as the library.
  [[nodiscard]] ::cudaKernel_t kernel(char const* name) const {
    ::cudaKernel_t kernel = nullptr;
    check(::cudaLibraryGetKernel(&kernel, library_, name), "cudaLibraryGetKernel");
    return kernel;
  }

  /// Enqueues \p kernel on \p stream, whose device is current: a grid-stride loop over \p work
  /// items, which are more than none.
  static void launch(::cudaKernel_t kernel,
                     ::cudaStream_t stream,
                     std::size_t work,
                     void** arguments) {
    constexpr std::size_t threads = 256;
    constexpr std::size_t most_blocks = 4096;
    ::cudaLaunchConfig_t config{};
    config.gridDim =
        dim3(static_cast<unsigned>(std::min((work + threads - 1) / threads, most_blocks)));
    config.blockDim = dim3(threads);
    config.stream = stream;
    check(::cudaLaunchKernelExC(&config, reinterpret_cast<void const*>(kernel), arguments),
          "cudaLaunchKernelExC");
  }

 private:
  DeviceId device_;
  ::cudaLibrary_t library_ = nullptr;
};

}  // namespace roundpipe::cu::detail
