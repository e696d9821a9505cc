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
#include <tuple>
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

TEST_CASE("blocks of queries see the keys up to their last query") {
  using Blocks = std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;
  Blocks blocks;
  nn::detail::for_each_query_block(
      130, [&](auto first, auto count, auto keys) { blocks.emplace_back(first, count, keys); });
  CHECK(blocks == Blocks{{0, 64, 64}, {64, 64, 128}, {128, 2, 130}});
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

}  // namespace host_attention_test
