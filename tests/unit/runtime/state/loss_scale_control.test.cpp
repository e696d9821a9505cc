// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/state/loss_scale_control.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

namespace loss_scale_control_test {

using namespace roundpipe;
using roundpipe::test::error_of;

TEST_CASE("without a loss scale nobody asks for overflows, and losses are as they are") {
  LossScaleControl control({}, 1);
  control.adapt(9, [](std::uint64_t) {
    FAIL_CHECK("asked");
    return true;
  });
  CHECK(control.value() == 1);
}

TEST_CASE(
    "each step is asked for once, when the staleness allows, and an overflow lowers the scale") {
  for (int const staleness : {0, 1}) {
    CAPTURE(staleness);
    LossScaleControl control(LossScaleOptions{.initial = 64}, staleness);
    std::vector<std::uint64_t> asked;
    auto const overflows_at_2 = [&](std::uint64_t step) {
      asked.push_back(step);
      return step == 2;
    };
    control.adapt(1, overflows_at_2);
    CHECK(asked.empty());
    CHECK(control.value() == 64);
    control.adapt(3, overflows_at_2);
    CHECK(asked ==
          (staleness == 0 ? std::vector<std::uint64_t>{1, 2} : std::vector<std::uint64_t>{1}));
    control.adapt(4, overflows_at_2);
    CHECK(asked == (staleness == 0 ? std::vector<std::uint64_t>{1, 2, 3}
                                   : std::vector<std::uint64_t>{1, 2}));
    CHECK(control.value() == 32);
  }
}

TEST_CASE("a training with a loss scale does not go on without one, nor the other way") {
  LossScaleControl with(LossScaleOptions{.initial = 64}, 1);
  LossScaleControl without({}, 1);
  CHECK_FALSE(without.state().has_value());
  CHECK(error_of([&] { without.restore(with.state()); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { with.restore(without.state()); }).code() == Errc::invalid_argument);
  without.restore({});
  with.restore(LossScaleState{.value = 8});
  CHECK(with.state()->value == 8);
}

TEST_CASE("a control goes back only from what an iteration must not know") {
  LossScaleControl control(LossScaleOptions{.initial = 64}, 0);
  auto const overflows = [](std::uint64_t) { return true; };
  control.adapt(2, overflows);
  auto const earlier = control;
  control.adapt(3, overflows);
  control.go_back(earlier, 3);
  CHECK(control.value() == 16);
  control.go_back(earlier, 2);
  CHECK(control.value() == 32);
}

}  // namespace loss_scale_control_test
