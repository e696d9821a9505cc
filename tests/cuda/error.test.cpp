// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/error.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <system_error>

namespace cu = roundpipe::cu;

TEST_CASE("a success passes the check") {
  CHECK_NOTHROW(cu::check(cudaSuccess, "cudaMalloc"));
  CHECK_FALSE(cu::make_error_code(cudaSuccess));
}

TEST_CASE("a failure names the call, the cause and the place") {
  try {
    cu::check(cudaErrorInvalidValue, "cudaMemcpyAsync");
    FAIL("check() returned");
  } catch (roundpipe::Error const& error) {
    std::string_view const what = error.what();
    CHECK(what.find("cudaMemcpyAsync") != what.npos);
    CHECK(what.find("cudaErrorInvalidValue") != what.npos);
    CHECK(what.find("invalid argument") != what.npos);
    CHECK(std::string_view(error.where().file_name()).ends_with("error.test.cpp"));
    CHECK(error.code() == cu::make_error_code(cudaErrorInvalidValue));
    CHECK(&error.code().category() == &cu::category());
    CHECK(std::string_view(error.code().category().name()) == "cuda");
  }
}

TEST_CASE("a status compares equal to the standard condition with the same meaning") {
  CHECK(cu::make_error_code(cudaErrorMemoryAllocation) == std::errc::not_enough_memory);
  CHECK(cu::make_error_code(cudaErrorInvalidValue) == std::errc::invalid_argument);
  CHECK(cu::make_error_code(cudaErrorNoDevice) == std::errc::no_such_device);
  CHECK(cu::make_error_code(cudaErrorInsufficientDriver) == std::errc::no_such_device);
  CHECK(cu::make_error_code(cudaErrorNotSupported) == std::errc::not_supported);
}

TEST_CASE("other statuses equal no standard condition, even when the numbers agree") {
  // cudaErrorIllegalAddress is 700; cudaErrorInitializationError is 3, as ESRCH is.
  CHECK(cu::make_error_code(cudaErrorInitializationError) != std::errc::no_such_process);
  CHECK(cu::make_error_code(cudaErrorIllegalAddress) != std::errc::bad_address);
  CHECK(cu::make_error_code(cudaErrorIllegalAddress).default_error_condition().category() ==
        cu::category());
}
