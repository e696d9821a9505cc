// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/probe/measure_costs.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/sequential.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <thread>

namespace measure_costs_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A layer whose passes take some time.
struct SlowScale : ToyScale {
  int forward_ms = 2;
  int backward_ms = 6;

  std::thread::id callers = std::this_thread::get_id();

  void forward(ForwardContext<HostStream>& ctx) const {
    CHECK(std::this_thread::get_id() != callers);
    ToyScale::forward(ctx);
    ctx.stream().launch(
        [ms = forward_ms] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); });
  }
  void backward(BackwardContext<HostStream>& ctx) const {
    ToyScale::backward(ctx);
    ctx.stream().launch(
        [ms = backward_ms] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); });
  }
};

}  // namespace

TEST_CASE("costs are the times of layers, and equal layers cost the same") {
  Sequential const model{ToyInput{}, repeat(3, SlowScale{}), ToyDense{}, ToyLoss{}};
  HostBackend backend;
  auto const costs = measure_costs(model, backend, describe(model, BatchShape{2, 5})).layers();
  REQUIRE(costs.size() == 6);
  for (std::size_t i = 1; i <= 3; ++i) {
    CHECK(costs[i].forward_s >= 2e-3);
    CHECK(costs[i].backward_s >= 6e-3);
    CHECK(costs[i].forward_s == costs[1].forward_s);
    CHECK(costs[i].backward_s == costs[1].backward_s);
  }
  CHECK(costs[4].forward_s > 0);
  CHECK(costs[4].forward_s != costs[1].forward_s);
}

TEST_CASE("a recomputation is measured from each save level that leaves something to compute") {
  Sequential const model{ToyInput{}, ToyDense{}, ToyLoss{}};
  HostBackend backend;
  auto const costs = measure_costs(model, backend, describe(model, BatchShape{2, 5})).layers();
  CHECK(costs[0].replay_s.empty());  // saves nothing
  REQUIRE(costs[1].replay_s.size() == 2);
  CHECK(costs[1].replay_s[0] > 0);
  CHECK(costs[1].replay_s[1] > 0);
  CHECK(costs[2].replay_s.empty());  // never recomputed
}

TEST_CASE("measuring continues for as long as a device takes to settle") {
  Sequential const model{ToyInput{}, SlowScale{}, ToyLoss{}};
  HostBackend backend;
  auto const begin = std::chrono::steady_clock::now();
  (void)measure_costs(model, backend, describe(model, BatchShape{1, 2}), 1, 0.05);
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(3 * 50));
}

}  // namespace measure_costs_test
