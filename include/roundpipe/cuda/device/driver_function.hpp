// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Finds functions of the CUDA driver at run time, so that programs do not link the driver.

#include <cuda_runtime_api.h>

namespace roundpipe::cu::detail {

/// The driver's \p name as of CUDA \p version (11070 is 11.7); null where there is no driver, or
/// one that lacks it. \p F is the pointer's type that \c cudaTypedefs.h has for this name and
/// version.
template <class F>
[[nodiscard]] F driver_function(char const* name, unsigned version) noexcept {
  void* address = nullptr;
  ::cudaDriverEntryPointQueryResult result{};
  if (::cudaGetDriverEntryPointByVersion(name, &address, version, ::cudaEnableDefault, &result) ==
          ::cudaSuccess &&
      result == ::cudaDriverEntryPointSuccess) {
    return reinterpret_cast<F>(address);
  }
  (void)::cudaGetLastError();
  return nullptr;
}

}  // namespace roundpipe::cu::detail
