// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/carve.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>
#include <support/nn_harness.hpp>
#include <support/owned_tensor.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace carve_test {

using namespace roundpipe;

TEST_CASE("scratch has its bytes, and what follows lies behind it") {
  test::GuardedMemory memory(3 * tensor_alignment_bytes);
  TensorCarver carver{memory.device()};
  auto const scratch = nn::detail::take_scratch(carver, 300);
  auto const next = carver.take({4}, DType::f32);
  CHECK(scratch.device_pointer() == memory.device().device_pointer());
  CHECK(scratch.size() == 300);
  CHECK(next.device_pointer() == scratch.device_pointer() + 2 * tensor_alignment_bytes);
}

TEST_CASE("where a carver only counts there is no scratch, but it counts") {
  TensorCarver carver;
  auto const scratch = nn::detail::take_scratch(carver, 300);
  CHECK(scratch.device_pointer() == nullptr);
  CHECK(scratch.size() == 0);
  CHECK(carver.used_bytes() == 2 * tensor_alignment_bytes);
}

TEST_CASE("a range of rows is those rows, whatever the tensor's shape") {
  test::OwnedTensor const tensor({2, 2, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  auto const rows = nn::detail::row_range(tensor, 3, 1, 2);
  CHECK(rows.shape() == Shape{2, 3});
  CHECK(rows.dtype() == DType::f64);
  CHECK(test::read(rows) == std::vector<double>{3, 4, 5, 6, 7, 8});
}

}  // namespace carve_test
