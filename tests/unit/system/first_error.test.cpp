// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/system/first_error.hpp>

#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <exception>

namespace first_error_test {

using namespace roundpipe;

TEST_CASE("the first error wins and is thrown at every request") {
  FirstError error;
  CHECK_FALSE(error.is_set());
  error.rethrow();
  CHECK(error.set(std::make_exception_ptr(Error(Errc::device_fault, "first"))));
  CHECK_FALSE(error.set(std::make_exception_ptr(Error(Errc::aborted, "second"))));
  CHECK(error.is_set());
  for (int i = 0; i < 2; ++i) {
    CHECK(test::error_of([&] { error.rethrow(); }).message() == "first");
  }
}

TEST_CASE("after an error is forgotten, the next one is the first") {
  FirstError error;
  error.set(std::make_exception_ptr(Error(Errc::device_fault, "first")));
  error.clear();
  CHECK_FALSE(error.is_set());
  error.rethrow();
  CHECK(error.set(std::make_exception_ptr(Error(Errc::aborted, "second"))));
  CHECK(test::error_of([&] { error.rethrow(); }).message() == "second");
}

}  // namespace first_error_test
