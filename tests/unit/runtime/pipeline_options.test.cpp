// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/pipeline_options.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>

namespace pipeline_options_test {

using namespace roundpipe;

namespace {

HostBackendOptions three_devices() {
  HostBackendOptions options;
  options.devices = 3;
  options.device_memory_bytes = 5_MiB;
  return options;
}

}  // namespace

TEST_CASE("open options take the values of the backend and of the machine") {
  HostBackend backend(three_devices());
  auto const all = complete_options({}, backend);
  CHECK(all.devices == 3);
  CHECK(all.host_memory > 0);
}

TEST_CASE("given options stay") {
  HostBackend backend(three_devices());
  PipelineOptions options;
  options.devices = 1;
  options.device_memory = 7;
  options.host_memory = 9;
  options.micro_batches_per_round = 5;
  auto const complete = complete_options(options, backend);
  CHECK(complete.devices == 1);
  CHECK(complete.device_memory == 7);
  CHECK(complete.host_memory == 9);
  CHECK(complete.micro_batches_per_round == 5);
}

TEST_CASE("options that are invalid for any plan are refused") {
  HostBackend backend(three_devices());
  auto const refused = [&](auto&& change) {
    PipelineOptions options;
    change(options);
    return test::error_of([&] { (void)complete_options(options, backend); }).code() ==
           Errc::invalid_argument;
  };
  CHECK(refused([](PipelineOptions& o) { o.devices = 4; }));
  CHECK(refused([](PipelineOptions& o) { o.clip_norm = -1; }));
  CHECK(
      refused([](PipelineOptions& o) { o.clip_norm = std::numeric_limits<double>::quiet_NaN(); }));
  CHECK(refused([](PipelineOptions& o) { o.calls_per_step = 0; }));
  CHECK(refused([](PipelineOptions& o) { o.cost_file = "costs"; }));  // of estimated costs
}

}  // namespace pipeline_options_test
