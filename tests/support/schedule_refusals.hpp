// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The shapes that every schedule refuses.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

namespace roundpipe::test {

/// Whether \p schedule refuses \p shape as an invalid argument.
template <Schedule S>
bool refuses(S const& schedule, ScheduleShape const& shape) {
  return error_of([&] { (void)schedule.tasks(shape); }).code() == Errc::invalid_argument;
}

/// Checks that the schedule accepts \p good, and refuses it without stages, devices, micro-batches
/// or rounds.
template <Schedule S>
void check_empty_shapes_are_refused(S const& schedule, ScheduleShape const& good) {
  CHECK_FALSE(refuses(schedule, good));
  auto const empty = [&](ScheduleShape const& shape) {
    CHECK(refuses(schedule, shape));
    CHECK(error_of([&] { (void)schedule.advance(shape); }).code() == Errc::invalid_argument);
  };
  auto bad = good;
  bad.forward_stages = bad.backward_stages = 0;
  empty(bad);
  bad = good;
  bad.devices = 0;
  empty(bad);
  bad = good;
  bad.micro_batches_per_round = 0;
  empty(bad);
  bad = good;
  bad.rounds = 0;
  empty(bad);
}

}  // namespace roundpipe::test
