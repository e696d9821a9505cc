// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_status.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace cuda_status_test {

using namespace roundpipe;
using cu::detail::CudaStatus;

TEST_CASE("an abort opens all fences, those that come later too, and stays") {
  CudaStatus status;
  std::uint64_t before = 3;
  std::uint64_t removed = 4;
  std::uint64_t after = 5;
  status.add_fence(before);
  status.add_fence(removed);
  status.remove_fence(removed);
  CHECK_FALSE(status.aborted());
  status.throw_if_aborted();
  CHECK(before == 3);

  status.abort();
  CHECK(status.aborted());
  CHECK(before == CudaStatus::passed);
  CHECK(removed == 4);
  status.add_fence(after);
  CHECK(after == CudaStatus::passed);
  CHECK(test::error_of([&] { status.throw_if_aborted(); }).code() == Errc::aborted);
}

TEST_CASE("an open fence passes waiters that compare by the sign of the difference") {
  auto const passes = [](std::uint64_t value, std::uint64_t awaited) {
    return static_cast<std::int64_t>(value - awaited) >= 0;
  };
  for (std::uint64_t const awaited : {std::uint64_t{0}, std::uint64_t{1}, CudaStatus::passed}) {
    CHECK(passes(CudaStatus::passed, awaited));
  }
}

}  // namespace cuda_status_test
