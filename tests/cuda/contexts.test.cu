// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Checks on which devices the process gets contexts, and which device stays current. All cases need
// two devices. They run in this order, because a context stays once it exists.

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/event.hpp>
#include <roundpipe/cuda/device/link_speed.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/cuda/device/shared_speed.hpp>
#include <roundpipe/cuda/device/stopwatch.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/matmul/matmul_algorithms.hpp>
#include <support/cuda_workers.hpp>

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace roundpipe;

using test::d0;
using test::d1;

/// Runs \p f on a thread that has never called CUDA. Values captured by \p f are destroyed before
/// the thread ends.
template <class F>
void on_fresh_thread(F f) {
  std::jthread([f = std::make_optional(std::move(f))]() mutable {
    (*f)();
    f.reset();
  });
}

/// Device 1, which the backend numbers 0.
cu::CudaBackendOptions second_device() {
  cu::CudaBackendOptions options;
  options.devices = {d1};
  options.device_memory_bytes = 64_MiB;
  return options;
}

/// All objects of a backend and of the device room, on device 1.
struct Objects {
  explicit Objects(cu::CudaBackend& backend)
      : stream(backend.make_stream(d0, LaneKind::compute)),
        begin(backend.make_event(d0)),
        end(backend.make_event(d0)),
        fence(backend.make_fence()),
        held(backend.make_held_fence()),
        device(backend.allocate_device(d0, 1_MiB)),
        host(backend.allocate_host(1_MiB)) {
    cu::CurrentDevice const current(d1);
    plain_stream.emplace();
    plain_event.emplace();
    stopwatch.emplace();
    memory = cu::DeviceMemory(d1, 1_MiB);
    pinned = cu::PinnedMemory(1_MiB);
  }

  /// Makes every call that launches no kernel.
  void use() {
    stream.record(begin);
    stream.copy(device.bytes(), host.bytes());
    stream.fill(device.bytes(), std::byte{1});
    stream.round(DeviceSpan<BFloat16>(
                     reinterpret_cast<BFloat16*>(device.bytes().device_pointer() + 4096), 256),
                 DeviceSpan<float const>(
                     reinterpret_cast<float const*>(device.bytes().device_pointer()), 256));
    stream.copy(host.bytes(), device.bytes());
    stream.wait(fence, 1);
    stream.record(end);
    stream.wait(begin);
    fence.signal(1);
    end.wait();
    CHECK(begin.ready());
    CHECK(end.seconds_since(begin) >= 0);
    stream.synchronize();
    stopwatch->start(*plain_stream);
    plain_event->record(*plain_stream);
    plain_stream->wait(*plain_event);
    plain_event->sync();
    CHECK(plain_event->is_done());
    CHECK(stopwatch->stop(*plain_stream) >= 0);
    plain_stream->sync();
    CHECK(plain_stream->is_done());
  }

  cu::CudaStream stream;
  cu::CudaEvent begin;
  cu::CudaEvent end;
  cu::CudaFence fence;
  cu::CudaFence held;
  cu::CudaBackend::DeviceSlab device;
  cu::CudaBackend::HostSlab host;
  std::optional<cu::Stream> plain_stream;
  std::optional<cu::Event> plain_event;
  std::optional<cu::detail::Stopwatch> stopwatch;
  cu::DeviceMemory memory;
  cu::PinnedMemory pinned;
};

}  // namespace

TEST_CASE("no thread makes a context on a device that was not named" *
          doctest::skip(!test::has_two_devices())) {
  REQUIRE_FALSE(cu::has_context(d0));
  std::unique_ptr<cu::CudaBackend> backend;
  on_fresh_thread([&] { backend = std::make_unique<cu::CudaBackend>(second_device()); });
  CHECK(cu::has_context(d1));
  CHECK_FALSE(cu::has_context(d0));

  std::unique_ptr<Objects> objects;
  on_fresh_thread([&] { objects = std::make_unique<Objects>(*backend); });
  CHECK_FALSE(cu::has_context(d0));
  on_fresh_thread([&] { objects->use(); });
  CHECK_FALSE(cu::has_context(d0));
  on_fresh_thread([owned = std::move(objects)] {});  // destroyed on another thread
  CHECK_FALSE(cu::has_context(d0));

  on_fresh_thread([] { CHECK(cu::measure_link(d1, 1_MiB).upload_bytes_per_second > 0); });
  on_fresh_thread([] {
    auto const speed = cu::measure_shared_speed(std::array{d1}, 1_MiB);
    CHECK(speed.devices == 1);
    CHECK(speed.of_one.upload_bytes_per_second > 0);
    CHECK(speed.of_each.download_bytes_per_second > 0);
    CHECK(speed.work_bytes_per_second > 0);
    for (auto const share : {speed.upload_share_beside_work, speed.download_share_beside_work}) {
      CHECK(share > 0);
      CHECK(share <= 1);
    }
  });
  on_fresh_thread([] { CHECK(cu::memory_info(d1).total_bytes > 0); });
  CHECK_FALSE(cu::has_context(d0));

  cu::MatmulProblem const problem{
      .m = 64, .n = 64, .k = 64, .operands = DType::bf16, .result = DType::bf16};
  on_fresh_thread([&] {
    CHECK(backend->resources().get<cu::MatmulAlgorithms>().find(d1, problem) != nullptr);
  });
  CHECK_FALSE(cu::has_context(d0));
  on_fresh_thread([owned = std::move(backend)] {});  // together with its handles and kernels
  CHECK_FALSE(cu::has_context(d0));
}

TEST_CASE("enqueueing keeps the current device" * doctest::skip(!test::has_two_devices())) {
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  REQUIRE(cudaFree(nullptr) == cudaSuccess);
  REQUIRE(cu::has_context(d0));
  auto const stays = [] { return cu::current_device() == d0; };
  auto backend = std::make_unique<cu::CudaBackend>(second_device());
  CHECK(stays());
  auto objects = std::make_unique<Objects>(*backend);
  CHECK(stays());
  objects->use();
  CHECK(stays());
  CHECK(objects->stream.get() != nullptr);  // for launches, which use the current device
  CHECK(cu::current_device() == d1);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  objects.reset();
  CHECK(stays());
  backend.reset();
  CHECK(stays());
}

TEST_CASE("a guard restores the previous device, also when an exception passes" *
          doctest::skip(!test::has_two_devices())) {
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  {
    cu::CurrentDevice const outer(d1);
    CHECK(cu::current_device() == d1);
    {
      cu::CurrentDevice const inner(d0);
      CHECK(cu::current_device() == d0);
    }
    CHECK(cu::current_device() == d1);
  }
  CHECK(cu::current_device() == d0);
  CHECK_THROWS((void)cu::DeviceMemory(d1, Bytes{1} << 60));
  CHECK(cu::current_device() == d0);
}
