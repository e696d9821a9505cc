// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The main function of every GPU test. Without a device the test is skipped (CTest's
/// SKIP_RETURN_CODE), never passed.

#define DOCTEST_CONFIG_IMPLEMENT
#include <support/run.hpp>

#include <cuda_runtime_api.h>

#include <cstdio>

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
  return roundpipe::test::run(argc, argv);
}
