// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/memory/memory_limit.hpp>

#include <roundpipe/partition/partitioner.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <string>
#include <vector>

namespace memory_limit_test {

using namespace roundpipe;
using test::error_of;

TEST_CASE("the smallest budget that a refusal names suffices, and one byte less does not") {
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    CAPTURE(i);
    std::vector<LayerBytes> layers(1 + random() % 9);
    for (auto& layer : layers) {
      auto const bytes = [&] { return random() % 5000; };
      layer = {bytes(), bytes(), bytes(), bytes(), bytes()};
    }
    StageMemory const memory(layers);
    Bytes const budget = random() % 60'000;
    PartitionProblem problem{.costs = std::vector<LayerCost>(layers.size(), {1, 2}),
                             .devices = 2,
                             .micro_batches_per_call = 4};
    auto const error = error_of([&] { problem.fits = fits_within(memory, budget); });
    auto const least = memory.least();
    if (!error.code()) {
      CHECK(least <= budget);
      CHECK_NOTHROW((void)Partitioner{}.partition(problem));
      continue;
    }
    ++refused;
    CHECK(error.code() == Errc::over_budget);
    CHECK(least > budget);
    CHECK(error.message().find("the least that would do is " + std::to_string(least) + " bytes") !=
          std::string::npos);
    problem.fits = fits_within(memory, least);
    CHECK_NOTHROW((void)Partitioner{}.partition(problem));
    CHECK(error_of([&] { (void)fits_within(memory, least - 1); }).code() == Errc::over_budget);
    problem.fits = [&](StageDirection direction, LayerRange range) {
      return memory.bytes(direction, range) < least;
    };
    CHECK(error_of([&] { (void)Partitioner{}.partition(problem); }).code() == Errc::over_budget);
  }
  CHECK(refused > 50);
  CHECK(refused < 250);
}

TEST_CASE("a refusal names the first layer that does not fit alone, its direction and its bytes") {
  std::vector<LayerBytes> layers(4);
  auto const message = [&](Bytes budget) {
    return error_of([&] { (void)fits_within(StageMemory(layers, {1, 1, 1}), budget); }).message();
  };
  layers[1].parameter_bytes = 10'240;
  layers[3].gradient_bytes = 20'480;
  CHECK(message(8192).find("layer 1 alone needs 10240 bytes (10.00 KiB) as a forward stage") !=
        std::string::npos);
  CHECK(message(16'384).find("layer 3 alone needs 20736 bytes (20.25 KiB) as the fused stage") !=
        std::string::npos);
  layers[2].saved_bytes = 30'720;
  CHECK(message(12'288).find("layer 2 alone needs 30720 bytes (30.00 KiB) as a backward stage") !=
        std::string::npos);
}

TEST_CASE("a layer that does not fit alone may fit beside others that shrink its boundary") {
  // Alone, layer 1 holds a large boundary several times; with layer 0, the boundary lies inside the
  // stage.
  std::vector<LayerBytes> layers(3);
  layers[0].boundary_bytes = 4096;
  StageMemory const memory(layers, {1, 1, 8});
  auto const budget = memory.bytes(StageDirection::backward, {0, 3});
  CHECK(memory.bytes(StageDirection::backward, {1, 1}) > budget);
  PartitionProblem problem{.costs = std::vector<LayerCost>(3, {1, 2}),
                           .devices = 4,
                           .micro_batches_per_call = 4,
                           .fits = fits_within(memory, budget)};
  auto const partition = Partitioner{}.partition(problem);
  for (auto const& range : partition.backward) {
    CHECK(memory.bytes(StageDirection::backward, range) <= budget);
  }
}

TEST_CASE("a model without layers is refused") {
  CHECK(error_of([] { (void)fits_within(StageMemory({}), 1); }).code() == Errc::invalid_argument);
}

}  // namespace memory_limit_test
