// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_elementwise.hpp>

#include <roundpipe/core/dtype.hpp>
#include <support/nn_harness.hpp>
#include <support/owned_tensor.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace host_elementwise_test {

using namespace roundpipe;
using test::OwnedTensor;
using test::read;
using test::relative_difference;

TEST_CASE("tiles follow each other, and the last one holds the rest") {
  std::vector<std::pair<std::size_t, std::int64_t>> tiles;
  nn::detail::for_each_tile(2050, [&](std::size_t at, auto n) { tiles.emplace_back(at, n); });
  CHECK(tiles ==
        std::vector<std::pair<std::size_t, std::int64_t>>{{0, 1024}, {1024, 1024}, {2048, 2}});
  nn::detail::for_each_tile(0, [](std::size_t, auto) { FAIL("a tile of nothing"); });
}

TEST_CASE("SwiGLU and its gradients match scalar formulas beyond one tile") {
  constexpr std::size_t size = 1030;
  Shape const shape{static_cast<std::int64_t>(size)};
  auto const silu = [](double z) { return z / (1 + std::exp(-z)); };
  std::vector<double> gate, up, dy, y, dgate, dup;
  for (std::size_t i = 0; i < size; ++i) {
    auto const z = 0.5 * (static_cast<double>(i % 41) - 20);
    auto const u = static_cast<double>(i % 7) - 3;
    auto const d = static_cast<double>(i % 5) - 2;
    constexpr double step = 1e-5;
    gate.push_back(z);
    up.push_back(u);
    dy.push_back(d);
    y.push_back(silu(z) * u);
    dgate.push_back(d * u * (silu(z + step) - silu(z - step)) / (2 * step));
    dup.push_back(d * silu(z));
  }
  OwnedTensor const gates(shape, gate);
  OwnedTensor const ups(shape, up);
  OwnedTensor const out(shape, DType::f64);
  nn::detail::run_swiglu<double>(out, gates, ups);
  CHECK(relative_difference(read(out), y) < 1e-14);
  OwnedTensor const gradient(shape, dy);  // becomes that of up
  OwnedTensor const gate_gradient(shape, DType::f64);
  OwnedTensor const again(shape, DType::f64);
  nn::detail::run_swiglu_backward<double>(gate_gradient, gradient, again, gradient, gates, ups);
  CHECK(relative_difference(read(gate_gradient), dgate) < 1e-9);
  CHECK(relative_difference(read(gradient), dup) < 1e-14);
  CHECK(relative_difference(read(again), y) < 1e-14);
}

}  // namespace host_elementwise_test
