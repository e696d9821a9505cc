// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The main function of every GPU test. Without a device the test is skipped (CTest's
/// SKIP_RETURN_CODE), never passed.

#define DOCTEST_CONFIG_IMPLEMENT
#include <roundpipe/cuda/matmul/matmul_algorithms.hpp>
#include <support/run.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  int devices = 0;
  cudaError_t const status = cudaGetDeviceCount(&devices);
  // Without a driver, the runtime reports a driver that is too old.
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver) {
    std::printf("skipped: %s\n", cudaGetErrorString(status));
    return skipped;
  }
  if (status != cudaSuccess) {
    std::printf("cudaGetDeviceCount: %s\n", cudaGetErrorString(status));
    return 1;
  }
  auto& algorithms = roundpipe::cu::MatmulAlgorithms::instance();
  if (auto const* const bytes = std::getenv("ROUNDPIPE_TEST_MATMUL_ALIGNMENT")) {  // sanitize.sh
    algorithms.limit_alignment(static_cast<std::uint32_t>(std::strtoul(bytes, nullptr, 10)));
  }
  if (std::getenv("ROUNDPIPE_TEST_MATMUL_UNMEASURED") != nullptr) {  // set by sanitize.sh, too
    algorithms.measure(false);
  }
  return roundpipe::test::run(argc, argv);
}
