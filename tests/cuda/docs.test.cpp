// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The GPU code of docs/07_own_backend.md: docs_are_tested.cmake looks for the page's blocks here.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace {

using namespace roundpipe;

bool has_device() {
  try {
    return cu::device_count() > 0;
  } catch (Error const&) {
    return false;
  }
}

TEST_CASE("a backend shares a trainer's streams and memory" * doctest::skip(!has_device())) {
  cu::Stream trainer_stream;
  cu::PinnedMemory weights(64_MiB);

  cu::CudaBackendOptions options;
  options.devices = {DeviceId(0)};                 // by CUDA's numbers; empty: all
  options.device_memory_bytes = 10_GiB;            // for slabs of each; 0: what is free
  options.stream = [&](DeviceId, LaneKind kind) {  // the backend's number of the device
    return kind == LaneKind::compute ? trainer_stream.get() : nullptr;  // null: one of its own
  };
  options.pinned = {weights.bytes()};  // slabs are cut from it first
  cu::CudaBackend backend(options);

  CHECK(backend.device_properties(DeviceId(0)).memory_bytes == 10_GiB);
  auto compute = backend.make_stream(DeviceId(0), LaneKind::compute);
  auto uploads = backend.make_stream(DeviceId(0), LaneKind::parameter_up);
  CHECK(compute.get() == trainer_stream.get());
  CHECK(uploads.get() != trainer_stream.get());
  auto const slab = backend.allocate_host(1_MiB);
  CHECK(slab.bytes().data() == weights.bytes().data());

  auto const device = backend.allocate_device(DeviceId(0), 1_MiB);
  auto fence = backend.make_fence();
  auto uploaded = backend.make_event(DeviceId(0));
  uploads.wait(fence, 1);  // what follows is enqueued, and does not run yet
  uploads.copy(device.bytes(), slab.bytes());
  uploads.record(uploaded);
  compute.wait(uploaded);
  compute.fill(device.bytes(), std::byte{});
  CHECK_FALSE(uploaded.ready());
  fence.signal(1);
  compute.synchronize();
  CHECK(uploaded.ready());
}

}  // namespace
