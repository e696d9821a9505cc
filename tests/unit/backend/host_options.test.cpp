// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_options.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>
#include <string>

namespace host_options_test {

namespace {

using namespace roundpipe;

/// The error of the default options after \p change.
template <class Change>
Error error_of_options(Change change) {
  HostBackendOptions options;
  change(options);
  return test::error_of([&] { detail::check_options(options); });
}

/// Checks that the number that \p number_of finds in the options may be each of \p valid, and that
/// each of \p invalid is refused with \p message.
template <class NumberOf>
void check_number(NumberOf number_of,
                  std::initializer_list<double> valid,
                  std::initializer_list<double> invalid,
                  std::string const& message) {
  for (auto const value : valid) {
    CAPTURE(value);
    CHECK_FALSE(error_of_options([&](auto& options) { number_of(options) = value; }).code());
  }
  for (auto const value : invalid) {
    CAPTURE(value);
    auto const error = error_of_options([&](auto& options) { number_of(options) = value; });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message() == message);
  }
}

constexpr auto infinite = std::numeric_limits<double>::infinity();
constexpr auto nan = std::numeric_limits<double>::quiet_NaN();
constexpr auto tiny = std::numeric_limits<double>::denorm_min();

}  // namespace

TEST_CASE("the default options are valid") {
  CHECK_FALSE(error_of_options([](auto&) {}).code());
}

TEST_CASE("a backend without devices is refused") {
  auto const error = error_of_options([](auto& options) { options.devices = 0; });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() == "a host backend needs at least one device");
}

TEST_CASE("transfer rates must be finite and not negative") {
  auto const check_rate = [](auto rate) {
    check_number(rate,
                 {0, tiny, 1e300},
                 {-tiny, -1, -infinite, infinite, nan},
                 "a transfer rate is negative or not finite; 0 means unlimited");
  };
  check_rate([](auto& options) -> double& { return options.link.upload_bytes_per_second; });
  check_rate([](auto& options) -> double& { return options.link.download_bytes_per_second; });
  check_rate([](auto& options) -> double& { return options.link.peer_bytes_per_second; });
  check_rate([](auto& options) -> double& { return options.root_bytes_per_second; });
}

TEST_CASE("the latency of a link must be between none and a day") {
  check_number([](auto& options) -> double& { return options.link.latency_seconds; },
               {0, tiny, 86400},
               {-tiny, -1, 86400.001, infinite, nan},
               "the latency of a link is negative or more than a day");
}

}  // namespace host_options_test
