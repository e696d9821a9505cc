// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/concepts/optimizer.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>

namespace optimizer_test {

namespace {

using namespace roundpipe;
using test::error_of;

struct Keeping {
  std::size_t arrays = 0;
  [[nodiscard]] std::size_t state_arrays() const { return arrays; }
  void update(UpdateContext const&,
              HostSpan<float>,
              HostSpan<float const>,
              std::span<HostSpan<float> const>) const {}
};

/// Updates matrices as a whole, and freezes everything from step 3 on.
struct Choosing : Keeping {
  [[nodiscard]] static bool updates_whole(ParameterInfo const& parameter) {
    return parameter.shape.rank() == 2;
  }
  [[nodiscard]] static bool freezes(ParameterInfo const&, std::uint64_t step) { return step >= 3; }
};

}  // namespace

TEST_CASE("an optimizer keeps at most 8 state arrays") {
  CHECK(state_arrays(Keeping{0}) == 0);
  CHECK(state_arrays(Keeping{8}) == 8);
  auto const error = error_of([] { return state_arrays(Keeping{9}); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() == "Optimizer::state_arrays breaks rule 1: it is 9, more than 8");
}

TEST_CASE("an optimizer is asked what it updates as a whole and what it freezes, if it says so") {
  ParameterInfo const matrix{.name = "0.weight", .shape = {2, 3}};
  ParameterInfo const vector{.name = "0.bias", .shape = {3}};
  CHECK(updates_whole(Choosing{}, matrix));
  CHECK_FALSE(updates_whole(Choosing{}, vector));
  CHECK_FALSE(updates_whole(Keeping{}, matrix));
  CHECK(freezes(Choosing{}, vector, 3));
  CHECK_FALSE(freezes(Choosing{}, vector, 2));
  CHECK_FALSE(freezes(Keeping{}, vector, 3));
}

}  // namespace optimizer_test
