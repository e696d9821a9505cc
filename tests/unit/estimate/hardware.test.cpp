// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/estimate/hardware.hpp>

#include <roundpipe/core/bytes.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>

namespace hardware_test {

namespace {

using namespace roundpipe;
using test::error_of;

Hardware whole() {
  return {{.name = "card",
           .memory_bytes = 1_GiB,
           .flops_per_second = 1e12,
           .memory_bytes_per_second = 1e11,
           .upload_bytes_per_second = 1e10,
           .download_bytes_per_second = 1e10},
          2e-6,
          "made up"};
}

std::string refusal(std::function<void(Hardware&)> const& change) {
  auto hardware = whole();
  change(hardware);
  auto const error = error_of([&] { check_hardware(hardware); });
  CHECK(error.code() == Errc::invalid_argument);
  return error.message();
}

}  // namespace

TEST_CASE("complete hardware passes, with a latency or without") {
  auto hardware = whole();
  CHECK_NOTHROW(check_hardware(hardware));
  hardware.latency_seconds = 0;
  CHECK_NOTHROW(check_hardware(hardware));
  hardware.sustained_flops_per_second = 1e12;
  CHECK_NOTHROW(check_hardware(hardware));
}

TEST_CASE("hardware without a required figure is refused, and the error names the figure") {
  CHECK(refusal([](auto& h) { h.device.name.clear(); }) == "hardware '': it has no name");
  CHECK(refusal([](auto& h) { h.device.memory_bytes = 0; }) ==
        "hardware 'card': memory_bytes must be positive");
  CHECK(refusal([](auto& h) { h.latency_seconds = -1e-9; }) ==
        "hardware 'card': latency_seconds must not be negative");
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
  for (auto const bad : {0.0, -1.0, infinity, nan}) {
    CAPTURE(bad);
    CHECK(refusal([&](auto& h) { h.device.flops_per_second = bad; }) ==
          "hardware 'card': flops_per_second must be positive");
    CHECK(refusal([&](auto& h) { h.device.memory_bytes_per_second = bad; }) ==
          "hardware 'card': memory_bytes_per_second must be positive");
    CHECK(refusal([&](auto& h) { h.device.upload_bytes_per_second = bad; }) ==
          "hardware 'card': upload_bytes_per_second must be positive");
    CHECK(refusal([&](auto& h) { h.device.download_bytes_per_second = bad; }) ==
          "hardware 'card': download_bytes_per_second must be positive");
  }
  refusal([&](auto& h) { h.latency_seconds = nan; });
  for (auto const bad : {-1.0, 1.001e12, infinity, nan}) {
    CAPTURE(bad);
    CHECK(refusal([&](auto& h) { h.sustained_flops_per_second = bad; }) ==
          "hardware 'card': sustained_flops_per_second must lie between 0 and flops_per_second");
  }
}

}  // namespace hardware_test
