// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect-error: (required expression|because) .*schedule\.advance\(shape\).* (is|would be) invalid
#include <roundpipe/concepts/schedule.hpp>

#include <cstddef>

struct Mine {
  roundpipe::DeviceTasks tasks(roundpipe::ScheduleShape const& shape) const {
    return roundpipe::DeviceTasks(shape.devices);
  }
#ifdef ROUNDPIPE_CONTROL
  std::size_t advance(roundpipe::ScheduleShape const&) const { return 0; }
#endif
};

template <roundpipe::Schedule S>
roundpipe::DeviceTasks plan(S const& schedule) {
  return schedule.tasks({});
}

roundpipe::DeviceTasks use() {
  return plan(Mine{});
}
