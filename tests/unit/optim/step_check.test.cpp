// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/optim/step_check.hpp>

#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace step_check_test {

namespace {

using namespace roundpipe;
using test::error_of;

ParameterInfo const weight{.name = "3.weight", .shape = {4, 4}};

template <class O>
std::string refusal(O const& optimizer, std::uint64_t step) {
  auto const error = error_of([&] { check_step(optimizer, weight, step); });
  CHECK((error.code() == Errc::invalid_argument || error.code() == std::error_code{}));
  return error.message();
}

/// Takes parts; refuses step 2, and notes what it sees.
struct Parts {
  std::vector<std::size_t>* sizes;
  [[nodiscard]] static std::size_t state_arrays() { return 3; }
  [[nodiscard]] static bool freezes(ParameterInfo const&, std::uint64_t step) { return step == 5; }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    sizes->push_back(weights.size());
    sizes->push_back(gradients.size());
    CHECK(states.size() == 3);
    for (auto const& state : states) {
      sizes->push_back(state.size());
      state[0] = 1;
    }
    weights[0] = 1;
    CHECK(context.first_element == 0);
    CHECK(context.parameter.name == weight.name);
    if (context.step == 2) {
      throw std::runtime_error("not that step");
    }
  }
};

/// Takes whole parameters, and must not be called with less.
struct Wholes : Parts {
  [[nodiscard]] static bool updates_whole(ParameterInfo const&) { return true; }
  [[nodiscard]] static bool freezes(ParameterInfo const&, std::uint64_t step) {
    if (step == 2) {
      throw 5;
    }
    return false;
  }
};

}  // namespace

TEST_CASE("a rate or a group that makes no sense is refused, with step and parameter") {
  auto const rate = [](std::uint64_t step) {
    return step == 3 ? std::numeric_limits<double>::quiet_NaN() : 0.1;
  };
  auto const check = [](auto const& optimizer) {
    CHECK(refusal(optimizer, 2) == "nothing was thrown");
    CHECK(refusal(optimizer, 3).find("step 3, parameter '3.weight': ") == 0);
  };
  check(AdamW({.rate = rate}));
  check(Sgd({.rate = rate}));
  auto const negative = [](ParameterInfo const&, std::uint64_t step) {
    return ParameterGroup{.decay = step == 3 ? -1.0 : 1.0};
  };
  check(AdamW({.groups = negative}));
  check(Sgd({.groups = negative}));
  auto const frozen = [](ParameterInfo const&, std::uint64_t) {
    return ParameterGroup{.rate = -1, .frozen = true};  // nobody asks for its rate
  };
  CHECK(refusal(AdamW({.rate = rate, .groups = frozen}), 3) == "nothing was thrown");
}

TEST_CASE("an optimizer without an element rule is asked with one element of no parameter") {
  std::vector<std::size_t> sizes;
  CHECK(refusal(Parts{&sizes}, 1) == "nothing was thrown");
  CHECK(sizes == std::vector<std::size_t>(5, 1));
  CHECK(refusal(Parts{&sizes}, 2) == "step 2, parameter '3.weight': not that step");
  sizes.clear();
  CHECK(refusal(Parts{&sizes}, 5) == "nothing was thrown");
  CHECK(sizes.empty());
}

TEST_CASE("an optimizer of whole parameters is asked whether it freezes them, and no more") {
  std::vector<std::size_t> sizes;
  CHECK(refusal(Wholes{{&sizes}}, 1) == "nothing was thrown");
  CHECK(refusal(Wholes{{&sizes}}, 2) ==
        "step 2, parameter '3.weight': an exception that is not a std::exception");
  CHECK(sizes.empty());
}

}  // namespace step_check_test
