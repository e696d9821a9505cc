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

/// For \ref cu::CudaBackendOptions::resources. Their products follow the variables that
/// tests/cuda/sanitize.sh sets.
inline std::shared_ptr<cu::CudaResources> make_resources() {
  auto resources = std::make_shared<cu::CudaResources>();
  auto& algorithms = resources->get<cu::MatmulAlgorithms>();
  if (auto const* const bytes = std::getenv("ROUNDPIPE_TEST_MATMUL_ALIGNMENT")) {
    algorithms.limit_alignment(static_cast<std::uint32_t>(std::strtoul(bytes, nullptr, 10)));
  }
  if (std::getenv("ROUNDPIPE_TEST_MATMUL_UNMEASURED") != nullptr) {
    algorithms.measure(false);
  }
  return resources;
}

/// Those of the whole program. Never destroyed: at its end the driver may be gone.
inline std::shared_ptr<cu::CudaResources> const& shared_resources() {
  static auto const& resources = *new std::shared_ptr(make_resources());
  return resources;
}

}  // namespace roundpipe::test
