// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/probe/measure_costs.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/model/sequential.hpp>
#include <support/error_of.hpp>
#include <support/faulty_layer.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace measure_costs_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A layer whose passes take some time, and that may write down its forwards.
struct SlowScale : ToyScale {
  int forward_ms = 2;
  int backward_ms = 6;
  int number = 0;
  std::vector<int>* forwards = nullptr;

  std::thread::id callers = std::this_thread::get_id();

  void forward(ForwardContext<HostStream>& ctx) const {
    CHECK(std::this_thread::get_id() != callers);
    if (forwards != nullptr) {
      forwards->push_back(number);
    }
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

/// A layer that is slow on one of two threads.
struct UnevenScale : ToyScale {
  std::shared_ptr<std::atomic<int>> threads = std::make_shared<std::atomic<int>>(0);

  void forward(ForwardContext<HostStream>& ctx) const {
    thread_local int const number = (*threads)++;
    ToyScale::forward(ctx);
    ctx.stream().launch(
        [ms = 12 * (number % 2)] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); });
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

TEST_CASE("layers take turns for their shares of a model's time, the largest share first") {
  std::vector<int> forwards;
  auto const slow = [&](int number, int backward_ms) {
    SlowScale layer;
    layer.backward_ms = backward_ms;
    layer.number = number;
    layer.forwards = &forwards;
    return layer;
  };
  Sequential const model{ToyInput{}, slow(1, 2), repeat(8, slow(2, 6)), ToyLoss{}};
  HostBackend backend;
  auto const description = describe(model, BatchShape{1, 2});

  // A run that does not count, and one that does; the copies of a layer do not run.
  (void)measure_costs(model, backend, description, 1, 1);
  CHECK(forwards == std::vector{1, 1, 2, 2});

  forwards.clear();
  auto const begin = std::chrono::steady_clock::now();
  auto const costs = measure_costs(model, backend, description, 1, 1, 0.4, 0.1).layers();
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::duration<double>(0.5));
  std::vector<std::pair<int, int>> turns;  // a layer, and how often it runs before another one does
  for (auto const number : forwards) {
    if (turns.empty() || turns.back().first != number) {
      turns.emplace_back(number, 0);
    }
    ++turns.back().second;
  }
  // The second layer settles behind its first runs, and begins the turns.
  REQUIRE(turns.size() >= 4);
  CHECK(turns[0] == std::pair(1, 2));
  CHECK(turns[1].first == 2);
  CHECK(turns[1].second > 2 + 12 / 2);
  for (std::size_t i = 2; i < turns.size(); ++i) {
    CHECK(turns[i].first == (i % 2 == 0 ? 1 : 2));
    CHECK((turns[i].first == 1 || turns[i].second > 4));  // a pass of the eight takes 8 ms
  }
  CHECK(costs[4].forward_s == costs[2].forward_s);
}

TEST_CASE("a layer that takes longer than its share of a turn waits for the next one") {
  std::vector<int> forwards;
  SlowScale many;
  many.number = 1;
  many.forwards = &forwards;
  auto one = many;
  one.number = 2;
  one.backward_ms = 30;  // of 32 + 20 * 8 ms: 33 ms of 200, and 8 of a turn
  Sequential const model{ToyInput{}, repeat(20, many), one, ToyLoss{}};
  HostBackend backend;
  (void)measure_costs(model, backend, describe(model, BatchShape{1, 2}), 1, 1, 0.2, 0.01);
  CHECK(std::ranges::count(forwards, 1) > 16);
  CHECK(std::ranges::count(forwards, 2) <= 2 + 2 + 2);  // the first runs, and two turns at most
}

TEST_CASE("the first run of a layer counts when it lasts") {
  std::vector<int> forwards;
  SlowScale slow;
  slow.forward_ms = 60;
  slow.backward_ms = 60;
  slow.forwards = &forwards;
  Sequential const model{ToyInput{}, slow, ToyLoss{}};
  HostBackend backend;
  (void)measure_costs(model, backend, describe(model, BatchShape{1, 2}), 1, 2);
  CHECK(forwards.size() == 2);
}

TEST_CASE("the slowest of several devices counts") {
  Sequential const model{ToyInput{}, UnevenScale{}, ToyLoss{}};
  HostBackend backend{{.devices = 2}};
  auto const description = describe(model, BatchShape{2, 5});
  for (auto const seconds : {0.0, 0.05}) {
    auto const costs = measure_costs(model, backend, description, 2, 1, seconds).layers();
    CHECK(costs[1].forward_s >= 12e-3);
  }
}

TEST_CASE("measuring takes memory for one layer at a time") {
  Sequential const model{ToyInput{}, repeat(3, ToyDense{}), SlowScale{}, ToyLoss{}};
  auto const description = describe(model, BatchShape{2, 5});
  HostBackendOptions machine;
  machine.device_memory_bytes = 0;
  for (auto const& facts : description.layers) {
    machine.device_memory_bytes =
        std::max(machine.device_memory_bytes,
                 detail::LayerProbe<decltype(model), HostBackend>::bytes_of(facts));
  }
  HostBackend backend(machine);
  CHECK(measure_costs(model, backend, description, 1, 1, 1e-3).layers().size() == 6);
  machine.device_memory_bytes -= 1;
  HostBackend smaller(machine);
  CHECK(error_of([&] { (void)measure_costs(model, smaller, description); }).code() ==
        std::errc::not_enough_memory);
}

TEST_CASE("a layer that throws when it is measured is named") {
  for (auto const& fault : FaultyLayer::all()) {
    Sequential const model{ToyInput{}, repeat(2, FaultyLayer{fault}), ToyLoss{}};
    HostBackend backend{{.devices = 2}};
    auto const error =
        error_of([&] { (void)measure_costs(model, backend, describe(model, BatchShape{2, 5})); });
    CHECK(error.code() == fault.code);
    CHECK(error.message() == "measuring of layer 1 (toy scale), device 0: " + fault.message);
  }
}

}  // namespace measure_costs_test
