// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_attention.hpp>

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/dtype.hpp>
#include <support/nn_harness.hpp>
#include <support/owned_tensor.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace host_attention_test {

using namespace roundpipe;
using test::OwnedTensor;
using test::read;
using test::relative_difference;

/// Vectors of four elements, of which only the first is not 0.
std::vector<double> vectors(std::vector<double> const& firsts) {
  std::vector<double> result;
  for (auto const value : firsts) {
    result.insert(result.end(), {value, 0, 0, 0});
  }
  return result;
}

TEST_CASE("blocks of queries see the keys up to their last query, from their first window on") {
  using Blocks = std::vector<nn::detail::QueryBlock>;
  auto const blocks = [](std::int64_t window) {
    Blocks list;
    nn::detail::for_each_query_block({.length = 130, .window = window},
                                     [&](auto const& block) { list.push_back(block); });
    return list;
  };
  CHECK(blocks(0) == Blocks{{0, 64, 0, 64}, {64, 64, 0, 128}, {128, 2, 0, 130}});
  CHECK(blocks(1) == Blocks{{0, 64, 0, 64}, {64, 64, 64, 64}, {128, 2, 128, 2}});
  CHECK(blocks(10) == Blocks{{0, 64, 0, 64}, {64, 64, 55, 73}, {128, 2, 119, 11}});
  CHECK(blocks(100) == Blocks{{0, 64, 0, 64}, {64, 64, 0, 128}, {128, 2, 29, 101}});
}

TEST_CASE("attention and its gradients have the values of a calculation by hand") {
  // Two positions, two heads of queries, one of keys; with four elements the scale is 1/2. The
  // first position sees itself alone. For the second one the first head weighs 3/4 and 1/4, the
  // second one 1/2 and 1/2.
  AttentionShape const shape{
      .rows = 1, .length = 2, .heads = 2, .kv_heads = 1, .head_dim = 4, .dtype = DType::f64};
  auto const ln3 = std::log(3.0);
  Shape const of_queries{1, 2, 2, 4};
  Shape const of_keys{1, 2, 1, 4};
  OwnedTensor const q(of_queries, vectors({10, 2, 2 * ln3, 0}));
  OwnedTensor const k(of_keys, vectors({1, 0}));
  OwnedTensor const v(of_keys, vectors({8, 4}));
  OwnedTensor const out(of_queries, DType::f64);
  OwnedTensor const lse({1, 2, 2}, DType::f64);  // by head
  nn::detail::run_attention<double>(shape, out, lse, q, k, v);
  CHECK(relative_difference(read(out), vectors({8, 8, 7, 6})) < 1e-14);
  CHECK(relative_difference(read(lse), {5, std::log(4.0), 1, std::log(2.0)}) < 1e-14);

  OwnedTensor const dout(of_queries, vectors({1, 0, 2, 4}));
  OwnedTensor const dq(of_queries, DType::f64);
  OwnedTensor const dk(of_keys, DType::f64);
  OwnedTensor const dv(of_keys, DType::f64);
  nn::detail::run_attention_backward<double>(shape, dq, dk, dv, dout, q, k, v, out, lse);
  CHECK(relative_difference(read(dv), vectors({4.5, 2.5})) < 1e-14);
  CHECK(relative_difference(read(dq), vectors({0, 0, 0.75, 2})) < 1e-14);
  CHECK(relative_difference(read(dk), vectors({1.5 * ln3, -1.5 * ln3})) < 1e-14);
}

TEST_CASE("attention in a window of one position hands on its value") {
  AttentionShape const shape{.rows = 1,
                             .length = 2,
                             .heads = 2,
                             .kv_heads = 1,
                             .head_dim = 4,
                             .dtype = DType::f64,
                             .window = 1};
  Shape const of_queries{1, 2, 2, 4};
  Shape const of_keys{1, 2, 1, 4};
  OwnedTensor const q(of_queries, vectors({10, 2, 6, 4}));
  OwnedTensor const k(of_keys, vectors({1, 3}));
  OwnedTensor const v(of_keys, vectors({8, 4}));
  OwnedTensor const out(of_queries, DType::f64);
  OwnedTensor const lse({1, 2, 2}, DType::f64);
  nn::detail::run_attention<double>(shape, out, lse, q, k, v);
  CHECK(relative_difference(read(out), vectors({8, 8, 4, 4})) < 1e-14);
  CHECK(relative_difference(read(lse), {5, 9, 1, 6}) < 1e-14);

  OwnedTensor const dout(of_queries, vectors({1, 0, 2, 4}));
  OwnedTensor const dq(of_queries, DType::f64);
  OwnedTensor const dk(of_keys, DType::f64);
  OwnedTensor const dv(of_keys, DType::f64);
  nn::detail::run_attention_backward<double>(shape, dq, dk, dv, dout, q, k, v, out, lse);
  CHECK(relative_difference(read(dv), vectors({1, 6})) < 1e-14);
  CHECK(read(dq) == vectors({0, 0, 0, 0}));
  CHECK(read(dk) == vectors({0, 0}));
}

}  // namespace host_attention_test
