// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What all backends of a GPU test program share, so that their results can be compared bit
/// by bit.

#include <roundpipe/cuda/cuda_resources.hpp>
#include <roundpipe/cuda/matmul/matmul_algorithms.hpp>

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace roundpipe::test {

/// For \ref cu::CudaBackendOptions::resources. Its products follow the variables that
/// tests/cuda/sanitize.sh sets. Never destroyed: at the program's end the driver may be gone.
inline std::shared_ptr<cu::CudaResources> const& shared_resources() {
  static auto const& resources = *[] {
    auto made =
        std::make_unique<std::shared_ptr<cu::CudaResources>>(std::make_shared<cu::CudaResources>());
    auto& algorithms = (*made)->get<cu::MatmulAlgorithms>();
    if (auto const* const bytes = std::getenv("ROUNDPIPE_TEST_MATMUL_ALIGNMENT")) {
      algorithms.limit_alignment(static_cast<std::uint32_t>(std::strtoul(bytes, nullptr, 10)));
    }
    if (std::getenv("ROUNDPIPE_TEST_MATMUL_UNMEASURED") != nullptr) {
      algorithms.measure(false);
    }
    return made.release();
  }();
  return resources;
}

}  // namespace roundpipe::test
