// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_resources.hpp>

#include <roundpipe/cuda/attention/attention_cudnn.hpp>
#include <roundpipe/cuda/matmul/matmul_algorithms.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cu = roundpipe::cu;

namespace {

struct Counted {
  Counted() { ++made; }
  Counted(Counted const&) = delete;
  Counted& operator=(Counted const&) = delete;
  ~Counted() { ++gone; }
  static inline std::atomic<int> made = 0;
  static inline std::atomic<int> gone = 0;
};

struct Reluctant {
  Reluctant() {
    if (++attempts < 2) {
      throw std::runtime_error("not yet");
    }
  }
  static inline int attempts = 0;
};

struct Dependent {
  explicit Dependent(cu::CudaResources& resources) : other(&resources.get<Counted>()) {}
  Counted* other;
};

}  // namespace

TEST_CASE(
    "the first request makes an object, later ones return it, and the resources keep it alive") {
  {
    cu::CudaResources resources;
    CHECK(Counted::made == 0);
    std::vector<Counted*> found(8);
    {
      std::vector<std::jthread> threads;
      for (auto& one : found) {
        threads.emplace_back([&] { one = &resources.get<Counted>(); });
      }
    }
    for (auto const* one : found) {
      CHECK(one == found.front());
    }
    CHECK(Counted::made == 1);
    CHECK(Counted::gone == 0);
  }
  CHECK(Counted::gone == 1);
}

TEST_CASE("an object may be made from others of the same resources") {
  cu::CudaResources resources;
  CHECK(resources.get<Dependent>().other == &resources.get<Counted>());
}

TEST_CASE("after a failure the next request tries again") {
  cu::CudaResources resources;
  CHECK_THROWS_AS((void)resources.get<Reluctant>(), std::runtime_error);
  (void)resources.get<Reluctant>();
  CHECK(Reluctant::attempts == 2);
}

TEST_CASE(
    "two sets of resources choose algorithms and plan attention separately, and need no device") {
  cu::CudaResources first;
  cu::CudaResources second;
  auto& algorithms = first.get<cu::MatmulAlgorithms>();
  algorithms.measure(false);
  CHECK_FALSE(first.get<cu::MatmulAlgorithms>().measures());
  CHECK(second.get<cu::MatmulAlgorithms>().measures());
  CHECK(&first.get<cu::CudnnAttention>() != &second.get<cu::CudnnAttention>());
}
