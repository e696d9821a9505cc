// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/error.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <system_error>

namespace cu = roundpipe::cu;

TEST_CASE("a failed check leaves no error in the runtime") {
  cudaError_t const status = cudaSetDevice(-1);
  REQUIRE(status == cudaErrorInvalidDevice);
  CHECK_THROWS_AS(cu::check(status, "cudaSetDevice"), roundpipe::Error);
  CHECK(cudaPeekAtLastError() == cudaSuccess);
}

TEST_CASE("an allocation beyond any device is not enough memory") {
  void* memory = nullptr;
  try {
    cu::check(cudaMalloc(&memory, std::numeric_limits<std::size_t>::max() / 2), "cudaMalloc");
    FAIL("check() returned");
  } catch (roundpipe::Error const& error) {
    CHECK(error.code() == std::errc::not_enough_memory);
  }
}
