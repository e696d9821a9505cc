// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/version.hpp>

#include <cuda_runtime_api.h>

#include <cstdio>
#include <system_error>

int main() {
  // Also runs on a machine without a device.
  bool const works =
      roundpipe::cu::make_error_code(cudaErrorMemoryAllocation) == std::errc::not_enough_memory;
  std::printf("roundpipe %d.%d.%d\n",
              ROUNDPIPE_VERSION_MAJOR,
              ROUNDPIPE_VERSION_MINOR,
              ROUNDPIPE_VERSION_PATCH);
  return works ? 0 : 1;
}
