// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/optim/parameter_group.hpp>

#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <support/error_of.hpp>
#include <support/optimizer_check.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace parameter_group_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// The parameter named "slow" learns at a quarter of the rate, and decays three times as much.
ParameterGroup slow_group(ParameterInfo const& parameter, std::uint64_t) {
  return parameter.name == "slow" ? ParameterGroup{.rate = 0.25, .decay = 3} : ParameterGroup{};
}

/// Five steps of \p optimizer with a parameter of this name.
template <Optimizer O>
Parameter trained(O const& optimizer, std::string const& name) {
  Parameter parameter(100, optimizer.state_arrays(), 1);
  for (std::uint64_t step = 1; step <= 5; ++step) {
    parameter.update(
        optimizer, {.step = step, .parameter = {.name = name}}, gradients(100, step), 100);
  }
  return parameter;
}

/// Whether a group's factors are factors of the optimizer's constants.
template <Optimizer O, class Options>
void check_factors(Options options) {
  options.rate = LearningRate::constant(0.5);
  options.weight_decay = 0.125;
  auto slow = options;
  slow.rate = LearningRate::constant(0.125);
  slow.weight_decay = 0.375;
  auto grouped = options;
  grouped.groups = slow_group;
  auto as_slow = trained(O(grouped), "slow");
  auto as_fast = trained(O(grouped), "fast");
  auto is_slow = trained(O(slow), "any");
  auto is_fast = trained(O(options), "any");
  CHECK(as_slow.same_bits(is_slow));
  CHECK(as_fast.same_bits(is_fast));
  CHECK_FALSE(as_slow.same_bits(as_fast));
}

}  // namespace

TEST_CASE("a group multiplies rate and decay of its parameters") {
  check_factors<AdamW>(AdamWOptions{});
  check_factors<Sgd>(SgdOptions{});
  check_factors<Sgd>(SgdOptions{.momentum = 0.5});
}

TEST_CASE("layers declare whether a parameter decays, where no function is given") {
  CHECK(declared_group({.decay = DecayGroup::decayed}, 1).decay == 1);
  CHECK(declared_group({.decay = DecayGroup::exempt}, 1).decay == 0);
  CHECK(declared_group({.decay = DecayGroup::exempt}, 1).rate == 1);
}

TEST_CASE("a group freezes its parameters in some steps") {
  AdamW const adamw({.groups = [](ParameterInfo const& parameter, std::uint64_t step) {
    return ParameterGroup{.frozen = parameter.name == "late" && step < 3};
  }});
  CHECK(freezes(adamw, {.name = "late"}, 2));
  CHECK_FALSE(freezes(adamw, {.name = "late"}, 3));
  CHECK_FALSE(freezes(adamw, {.name = "early"}, 2));
  CHECK_FALSE(freezes(Sgd{}, {.name = "late"}, 2));
}

TEST_CASE("factors that make no sense are refused, with the parameter named") {
  auto const nan = std::numeric_limits<double>::quiet_NaN();
  for (auto const bad : {-1.0, nan, std::numeric_limits<double>::infinity()}) {
    for (auto const& group : {ParameterGroup{.rate = bad}, ParameterGroup{.decay = bad}}) {
      Sgd const sgd({.groups = [&](ParameterInfo const&, std::uint64_t) { return group; }});
      auto const error = error_of([&] { (void)trained(sgd, "layer.bias"); });
      CHECK(error.code() == Errc::invalid_argument);
      CHECK(error.message().find("parameter 'layer.bias'") != std::string::npos);
    }
  }
  CHECK_THROWS_AS(Sgd({.groups = {}}), Error);
  CHECK_THROWS_AS(AdamW({.groups = {}}), Error);
}

}  // namespace parameter_group_test
