// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/matmul/matmul_plan.hpp>

#include <roundpipe/cuda/matmul/blas.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <sstream>
#include <system_error>

namespace cu = roundpipe::cu;
using roundpipe::DType;

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
  cu::MatmulProblem const small{.m = 32768, .n = 2048, .k = 151936};
  CHECK(cu::detail::measured_problem(small) == small);
  auto const part =
      cu::detail::measured_problem({.m = 151936, .n = 100'001, .k = 2048, .adds = true});
  CHECK(part.m == 32640);
  CHECK(part.m % 256 == 151936 % 256);
  CHECK(part.n > 32768 - 256);
  CHECK(part.n <= 32768);
  CHECK(part.n % 256 == 100'001 % 256);
  CHECK(part.k == 2048);
  CHECK(part.adds);
}

TEST_CASE("a cuBLAS status becomes an error in the words of other errors") {
  auto const error =
      roundpipe::test::error_of([] { cu::check(CUBLAS_STATUS_ALLOC_FAILED, "cublasLtCreate"); });
  CHECK(error.code() == std::errc::not_enough_memory);
  CHECK(error.message() == "cublasLtCreate");
  CHECK(error.code().message() == "CUBLAS_STATUS_ALLOC_FAILED");
  cu::check(CUBLAS_STATUS_SUCCESS, "nothing");
}
