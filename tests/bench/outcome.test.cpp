// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <train_throughput/outcome.hpp>

#include <roundpipe/nn/transformer_config.hpp>
#include <train_throughput/options.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace outcome_test {
namespace {

TEST_CASE("a speed is that of whole periods: the last ones") {
  auto const config =
      roundpipe::nn::TransformerConfig{.vocabulary = 64, .hidden = 32, .heads = 2}.resolved();
  auto const iteration_s = [&](std::size_t period, std::vector<double> const& iterations_s) {
    train_throughput::Outcome outcome;
    outcome.period = period;
    outcome.iterations_s = iterations_s;
    return speed_of({}, config, outcome).iteration_s;
  };
  CHECK(iteration_s(1, {6, 9, 9}) == 8);
  CHECK(iteration_s(2, {9, 1, 3}) == 2);
  CHECK(iteration_s(3, {9, 9, 1, 2, 3}) == 2);
  CHECK(iteration_s(4, {1, 2, 6}) == 3);  // there is none
}

}  // namespace
}  // namespace outcome_test
