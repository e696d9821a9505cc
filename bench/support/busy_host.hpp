// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Work of a given time on a stream of the host backend.

#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/core/span.hpp>

#include <chrono>
#include <thread>

namespace roundpipe::bench {

/// What a `TimedLayer` does on the host: it sleeps.
struct Busy {
  static void spend(HostStream& stream, std::chrono::microseconds duration) {
    stream.launch([duration] { std::this_thread::sleep_for(duration); });
  }
  static void write(HostStream& stream, DeviceSpan<double> place, double value) {
    stream.launch([place, value] { *place.device_pointer() = value; });
  }
};

}  // namespace roundpipe::bench
