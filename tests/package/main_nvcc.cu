// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/roundpipe_cuda.cuh>

#include <cstdio>

__global__ void nothing() {}

int main() {
  static_assert(__cplusplus >= 202002L);  // the target gives nvcc C++20
  std::printf("roundpipe %d.%d.%d\n",
              ROUNDPIPE_VERSION_MAJOR,
              ROUNDPIPE_VERSION_MINOR,
              ROUNDPIPE_VERSION_PATCH);
}
