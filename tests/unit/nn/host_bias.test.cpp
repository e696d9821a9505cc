// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_bias.hpp>

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/nn/op_checks.hpp>
#include <support/nn_harness.hpp>
#include <support/owned_tensor.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace host_bias_test {

using namespace roundpipe;
using test::OwnedTensor;
using test::read;

constexpr nn::RowExtents extents{.rows = 3, .width = 2};

TEST_CASE("a bias is added to every row, or is every row") {
  OwnedTensor const bias({2}, {10, 20});
  OwnedTensor const addend({3, 2}, {1, 2, 3, 4, 5, 6});
  OwnedTensor const y({3, 2}, DType::f64);
  nn::detail::run_add_bias<double>(extents, y, bias, absent);
  CHECK(read(y) == std::vector<double>{10, 20, 10, 20, 10, 20});
  nn::detail::run_add_bias<double>(extents, y, bias, addend);
  CHECK(read(y) == std::vector<double>{11, 22, 13, 24, 15, 26});
  nn::detail::run_add_bias<double>(extents, addend, bias, addend);  // in place
  CHECK(read(addend) == read(y));
}

TEST_CASE("a bias of another type is rounded to the result's type") {
  OwnedTensor const bias({2}, DType::f32);
  test::write(bias, std::vector<double>{1.00390625, 2});  // a tie of two bf16 numbers
  OwnedTensor const addend({3, 2}, DType::bf16);
  test::write(addend, std::vector<double>{0, 0, 0.00390625, 1, 2, 3});
  OwnedTensor const y({3, 2}, DType::bf16);
  nn::detail::run_add_bias<float>(extents, y, bias, absent);
  CHECK(read(y) == std::vector<double>{1, 2, 1, 2, 1, 2});
  nn::detail::run_add_bias<float>(extents, y, bias, addend);
  CHECK(read(y) == std::vector<double>{1, 2, 1.0078125, 3, 3, 5});
}

TEST_CASE("a bias's gradient is the sum of the rows, added to what is there") {
  OwnedTensor const dy({3, 2}, {1, 2, 3, 4, 5, 6});
  OwnedTensor const dbias({2}, {100, 200});
  nn::detail::run_bias_gradient<double>(extents, dbias, dy);
  CHECK(read(dbias) == std::vector<double>{109, 212});
}

TEST_CASE("rows of bf16 are summed in float") {
  OwnedTensor const dy({3, 2}, DType::bf16);
  test::write(dy, std::vector<double>{256, 1, 1, 1, 1, 1});  // 257 is no bf16 number
  OwnedTensor const dbias({2}, DType::f32);
  test::write(dbias, std::vector<double>{0, 0});
  nn::detail::run_bias_gradient<float>(extents, dbias, dy);
  CHECK(read(dbias) == std::vector<double>{258, 3});
}

}  // namespace host_bias_test
