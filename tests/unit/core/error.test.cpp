// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/error.hpp>

#include <doctest/doctest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>

namespace error_test {

namespace {

using roundpipe::Errc;
using roundpipe::Error;
using roundpipe::require;

constexpr Errc all_codes[] = {Errc::invalid_argument,
                              Errc::boundary_mismatch,
                              Errc::over_budget,
                              Errc::not_finite,
                              Errc::device_fault,
                              Errc::aborted,
                              Errc::unsupported,
                              Errc::unsafe_graph,
                              Errc::bad_file};

// Checks arguments at compile time, too.
constexpr int half(int n) {
  require(n % 2 == 0, Errc::invalid_argument, "an odd number has no half");
  return n / 2;
}
static_assert(half(4) == 2);

static_assert(std::is_base_of_v<std::system_error, Error>);
static_assert(std::is_nothrow_copy_constructible_v<std::system_error>);
static_assert(!std::is_convertible_v<int, Errc>);

}  // namespace

TEST_CASE("every code has its own message, and no code is 0") {
  std::set<std::string> messages;
  for (auto const code : all_codes) {
    CHECK(static_cast<int>(code) != 0);
    CHECK(messages.insert(make_error_code(code).message()).second);
  }
  CHECK_FALSE(messages.contains(roundpipe::category().message(999)));
  CHECK(std::string(roundpipe::category().name()) == "roundpipe");
}

TEST_CASE("codes compare equal to themselves and to their error conditions") {
  std::error_code const code = Errc::over_budget;
  CHECK(code == Errc::over_budget);
  CHECK(code != Errc::aborted);
  CHECK(code == std::errc::not_enough_memory);
  CHECK(make_error_code(Errc::invalid_argument) == std::errc::invalid_argument);
  CHECK(make_error_code(Errc::boundary_mismatch) == std::errc::invalid_argument);
  CHECK(make_error_code(Errc::boundary_mismatch) != Errc::invalid_argument);
  CHECK(make_error_code(Errc::aborted) == std::errc::operation_canceled);
  CHECK(make_error_code(Errc::unsupported) == std::errc::not_supported);
  for (auto const own : {Errc::not_finite, Errc::device_fault}) {
    auto const condition = make_error_code(own).default_error_condition();
    CHECK(condition.category() == roundpipe::category());
    CHECK(make_error_code(own) == condition);
  }
}

TEST_CASE("codes of different categories differ, even with the same value") {
  std::error_code const other(static_cast<int>(Errc::aborted), std::generic_category());
  CHECK(other != Errc::aborted);
}

TEST_CASE("an error carries code, message and the place of the call") {
  auto const line = __LINE__ + 2;
  try {
    throw Error(Errc::device_fault, "stage 3 on device 1");
  } catch (Error const& error) {
    CHECK(error.code() == Errc::device_fault);
    CHECK(error.message() == "stage 3 on device 1");
    CHECK(std::string(error.what()) == "stage 3 on device 1: device fault");
    CHECK(error.where().line() == static_cast<unsigned>(line));
    CHECK(std::string(error.where().file_name()).find("error.test.cpp") != std::string::npos);
  }
}

TEST_CASE("an error can carry a code of another category") {
  Error const error(std::make_error_code(std::errc::io_error), "reading weights");
  CHECK(error.code() == std::errc::io_error);
  CHECK(error.message() == "reading weights");
}

TEST_CASE("an error can be caught as standard exception types") {
  CHECK_THROWS_AS(throw Error(Errc::aborted, "x"), std::system_error);
  CHECK_THROWS_AS(throw Error(Errc::aborted, "x"), std::runtime_error);
}

TEST_CASE("a copy of an error keeps code, message and place") {
  Error const error(Errc::not_finite, "loss of micro-batch 2");
  Error const copy = error;  // as rethrowing on another thread does
  CHECK(copy.code() == error.code());
  CHECK(copy.message() == error.message());
  CHECK(copy.where().line() == error.where().line());
}

TEST_CASE("whatever is thrown becomes an error that says where") {
  auto const caught = [](auto const& thrown) {
    try {
      throw thrown;
    } catch (...) {
      return roundpipe::current_error("layer 3: ", Errc::unsupported);
    }
  };
  Error const error(Errc::over_budget, "full");
  CHECK(caught(error).code() == Errc::over_budget);
  CHECK(caught(error).message() == "layer 3: full");
  CHECK(caught(error).where().line() == error.where().line());
  CHECK(caught(std::runtime_error("odd")).code() == Errc::unsupported);
  CHECK(caught(std::runtime_error("odd")).message() == "layer 3: odd");
  CHECK(caught(5).code() == Errc::unsupported);
  CHECK(caught(5).message() == "layer 3: an exception that is not a std::exception");
}

TEST_CASE("require throws at the caller's place when the condition is false") {
  CHECK_NOTHROW(require(true, Errc::aborted, "no"));
  auto const line = __LINE__ + 2;
  try {
    require(false, Errc::unsupported, "not yet");
    FAIL("require() returned");
  } catch (Error const& error) {
    CHECK(error.code() == Errc::unsupported);
    CHECK(error.message() == "not yet");
    CHECK(error.where().line() == static_cast<unsigned>(line));
  }
  CHECK_THROWS_AS((void)half(3), Error);
}

}  // namespace error_test
