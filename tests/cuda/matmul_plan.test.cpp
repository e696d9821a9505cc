// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/matmul/matmul_plan.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/cuda/matmul/blas.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <sstream>
#include <system_error>

namespace cu = roundpipe::cu;
using roundpipe::Bytes;
using roundpipe::DType;
using roundpipe::cu::detail::measured_problem;
using namespace roundpipe::literals;

TEST_CASE("a problem survives writing and reading") {
  cu::MatmulProblem const problem{.m = 5,
                                  .n = 1LL << 33,
                                  .k = 7,
                                  .operands = DType::f16,
                                  .result = DType::f32,
                                  .transpose_b = true,
                                  .adds = true,
                                  .alignments = {2, 4, 8, 256}};
  std::stringstream text;
  cu::write(text, problem);
  cu::MatmulProblem copy;
  CHECK(cu::read(text, copy));
  CHECK(copy == problem);
  CHECK(cu::hash_of(copy) == cu::hash_of(problem));
  copy.adds = false;
  CHECK(cu::hash_of(copy) != cu::hash_of(problem));
}

TEST_CASE("a problem with impossible extents or types is refused") {
  for (char const* const line : {"",
                                 "0 1 1 1 1 0 0 0 2 2 2 2",
                                 "1 1 1 0 1 0 0 0 2 2 2 2",
                                 "1 1 1 1 99 0 0 0 2 2 2 2",
                                 "1 1 1 1 1 0 0 0 2 2 2"}) {
    std::istringstream text(line);
    cu::MatmulProblem problem;
    CHECK_FALSE(cu::read(text, problem));
  }
}

TEST_CASE("a large product is measured by a part of it with the same edges") {
  constexpr auto all = std::numeric_limits<Bytes>::max();
  cu::MatmulProblem const small{.m = 16384, .n = 2048, .k = 151936};
  CHECK(measured_problem(small, all) == small);
  auto const part = measured_problem({.m = 151936, .n = 100'001, .k = 2048, .adds = true}, all);
  REQUIRE(part);
  CHECK(part->m == 16256);
  CHECK(part->m % 256 == 151936 % 256);
  CHECK(part->n > 16384 - 256);
  CHECK(part->n <= 16384);
  CHECK(part->n % 256 == 100'001 % 256);
  CHECK(part->k == 2048);
  CHECK(part->adds);
}

TEST_CASE("what stands for a product where it is measured fits the memory that is left") {
  // The gradient of a head's input: 2048 positions, a vocabulary of 151,936.
  cu::MatmulProblem const problem{
      .m = 2048, .n = 2048, .k = 151'936, .operands = DType::bf16, .result = DType::bf16};
  auto const [a, b, d] = cu::detail::matmul_bytes(problem);
  CHECK(a == 622'329'856);
  CHECK(b == 622'329'856);
  CHECK(d == 8_MiB);
  auto const whole = cu::detail::measuring_bytes(problem);
  CHECK(whole >= a + b + d + cu::matmul_scratch_bytes());
  CHECK(whole <= a + b + d + cu::matmul_scratch_bytes() + 4 * 32_MiB);
  CHECK(measured_problem(problem, whole) == problem);

  auto const halved = measured_problem(problem, whole - 1);
  REQUIRE(halved);
  CHECK(cu::detail::measuring_bytes(*halved) < whole);
  CHECK(halved->m == 2048);
  CHECK(halved->n == 2048);
  CHECK(halved->k <= 151'936 / 2);
  CHECK(halved->k > 151'936 / 2 - 256);
  CHECK(halved->k % 256 == 151'936 % 256);

  for (Bytes const most : {600_MiB, 300_MiB, 200_MiB}) {
    auto const smaller = measured_problem(problem, most);
    REQUIRE(smaller);
    CHECK(cu::detail::measuring_bytes(*smaller) <= most);
  }
  CHECK_FALSE(measured_problem(problem, 0));
  CHECK_FALSE(measured_problem({.m = 10, .n = 10, .k = 10}, 64_MiB));
}

TEST_CASE("a cuBLAS status becomes an error in the words of other errors") {
  auto const error =
      roundpipe::test::error_of([] { cu::check(CUBLAS_STATUS_ALLOC_FAILED, "cublasLtCreate"); });
  CHECK(error.code() == std::errc::not_enough_memory);
  CHECK(error.message() == "cublasLtCreate");
  CHECK(error.code().message() == "CUBLAS_STATUS_ALLOC_FAILED");
  cu::check(CUBLAS_STATUS_SUCCESS, "nothing");
}
