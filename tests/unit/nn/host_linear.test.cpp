// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_linear.hpp>

#include <roundpipe/concepts/ops.hpp>
#include <support/nn_harness.hpp>
#include <support/owned_tensor.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace host_linear_test {

using namespace roundpipe;
using nn::detail::MatrixView;
using test::OwnedTensor;
using test::read;
using Values = std::vector<double>;

TEST_CASE("products add to their output, scale, and keep to the columns of a view") {
  double const a[] = {1, 2, -1, 3, 4, -1};  // {1, 2} and {3, 4}, 3 elements apart
  double const b[] = {5, 6, 7, 8};
  MatrixView<double const> const left{a, 2, 2, 3};
  auto const right = MatrixView<double const>::dense(b, 2, 2);
  auto const product = [&](auto const& add) {
    Values c(6, 100);
    add(MatrixView<double>{c.data(), 2, 2, 3});
    return c;
  };
  CHECK(product([&](auto c) { nn::detail::add_product_nn<double>(c, left, right, 2); }) ==
        Values{138, 144, 100, 186, 200, 100});
  CHECK(product([&](auto c) { nn::detail::add_product_nt<double>(c, left, right, 2); }) ==
        Values{134, 146, 100, 178, 206, 100});
  CHECK(product([&](auto c) { nn::detail::add_product_tn<double>(c, left, right, 2); }) ==
        Values{152, 160, 100, 176, 188, 100});
}

TEST_CASE("a linear map and its gradients have the values of a calculation by hand") {
  nn::LinearExtents const extents{.rows = 2, .in = 3, .out = 2};
  OwnedTensor const x({2, 3}, {1, 2, 3, 4, 5, 6});
  OwnedTensor const weight({2, 3}, {1, 0, -1, 2, 1, 0});
  OwnedTensor const y({2, 2}, DType::f64);
  nn::detail::run_linear<double>(extents, y, x, weight, OwnedTensor({2, 2}, {10, 20, 30, 40}));
  CHECK(read(y) == Values{8, 24, 28, 53});
  nn::detail::run_linear<double>(extents, y, x, weight, OwnedTensor({2, 2}, {10, 20, 30, 40}), 2);
  CHECK(read(y) == Values{6, 28, 26, 66});
  OwnedTensor const dy({2, 2}, {1, 2, 3, 4});
  OwnedTensor const dx({2, 3}, DType::f64);
  nn::detail::run_linear_input_gradient<double>(extents, dx, dy, weight, absent);
  CHECK(read(dx) == Values{5, 2, -1, 11, 4, -3});
  nn::detail::run_linear_input_gradient<double>(extents, dx, dy, weight, dx, -1);
  CHECK(read(dx) == Values(6, 0));
  OwnedTensor const dweight({2, 3}, {1, 1, 1, 1, 1, 1});
  nn::detail::run_linear_weight_gradient<double>(extents, dweight, dy, x);
  CHECK(read(dweight) == Values{14, 18, 22, 19, 25, 31});
}

}  // namespace host_linear_test
