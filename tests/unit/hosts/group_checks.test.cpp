// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/hosts/group_checks.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <span>

namespace group_checks_test {

using namespace roundpipe;
using namespace roundpipe::detail;
using test::error_of;

namespace {

std::array<std::byte, 8> bytes{};

HostBytes first(std::size_t count) {
  return HostBytes(bytes.data(), count);
}

}  // namespace

TEST_CASE("a gather has room for as much from each rank") {
  check_gather(2, first(4), first(8));
  check_gather(3, first(0), first(0));
  auto const error = error_of([] { check_gather(2, first(4), first(7)); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() == "a gather of 4 bytes from each of 2 ranks has room for 7");
}

TEST_CASE("an exchange has a part for each rank, and what a rank sends itself it receives") {
  std::array<ConstHostBytes, 2> const mine{first(3), first(1)};
  std::array<HostBytes, 2> const theirs{first(3), first(8)};  // only that of rank 1 is known there
  check_exchange(0, 2, mine, theirs);
  auto const of_itself = error_of([&] { check_exchange(1, 2, mine, theirs); });
  CHECK(of_itself.code() == Errc::invalid_argument);
  CHECK(of_itself.message() == "in an exchange rank 1 sends itself 1 bytes and receives 8");
  auto const missing = error_of([&] { check_exchange(0, 2, mine, std::span(theirs).first(1)); });
  CHECK(missing.code() == Errc::invalid_argument);
  CHECK(missing.message() == "an exchange among 2 ranks has 2 parts to send and 1 to receive");
  CHECK(error_of([&] { check_exchange(0, 3, mine, theirs); }).code() == Errc::invalid_argument);
}

TEST_CASE("who broadcasts is a rank") {
  check_root(2, 1);
  auto const error = error_of([] { check_root(2, 2); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() == "rank 2 is to broadcast, and there are 2 ranks");
}

}  // namespace group_checks_test
