// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The main function of every bench of the CUDA backend. Without a device it says so and
/// returns CTest's SKIP_RETURN_CODE: skipped, never passed.

#include <roundpipe/core/error.hpp>
#include <roundpipe/cuda/device/device.hpp>

#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <system_error>

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  try {
    (void)roundpipe::cu::device_count();
  } catch (roundpipe::Error const& error) {
    std::printf("skipped: %s\n", error.what());
    return error.code() == std::errc::no_such_device ? skipped : 1;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  try {
    benchmark::RunSpecifiedBenchmarks();
  } catch (std::exception const& error) {
    std::printf("ERROR OCCURRED: %s\n", error.what());
    return 1;
  }
  benchmark::Shutdown();
}
