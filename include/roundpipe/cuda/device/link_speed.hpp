// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Measures the links between the host and devices.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/cuda/device/stopwatch.hpp>
#include <roundpipe/cuda/device/stream.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <set>
#include <span>

namespace roundpipe::cu {

/// Bytes a second of large copies, each direction alone.
struct LinkSpeed {
  double upload_bytes_per_second = 0;
  double download_bytes_per_second = 0;
};

/// Copies blocks of \p bytes in each direction and takes the fastest; takes a few milliseconds. The
/// calling thread's current device stays. \throws Error when there is no memory for it.
[[nodiscard]] inline LinkSpeed measure_link(DeviceId device, Bytes bytes = Bytes{32} << 20) {
  constexpr int repetitions = 4;
  CurrentDevice const current(device);
  PinnedMemory const host(bytes);
  DeviceMemory const there(device, bytes);
  Stream const stream;
  detail::Stopwatch stopwatch;
  auto const fastest = [&](void* to, void const* from, ::cudaMemcpyKind kind) {
    double best = 0;
    for (int i = 0; i < repetitions; ++i) {
      stopwatch.start(stream);
      check(::cudaMemcpyAsync(to, from, bytes, kind, stream.get()), "cudaMemcpyAsync");
      best = std::max(best, static_cast<double>(bytes) / stopwatch.stop(stream));
    }
    return best;
  };
  auto* const here = host.bytes().data();
  auto* const remote = there.bytes().device_pointer();
  return {fastest(remote, here, ::cudaMemcpyHostToDevice),
          fastest(here, remote, ::cudaMemcpyDeviceToHost)};
}

/// Bytes a second of large copies of all \p devices at once, each counted once, in both directions
/// together. Copies some blocks of \p bytes each way, and takes the fastest; takes a tenth of a
/// second a device. The calling thread's current device stays. \throws Error when there is no
/// memory for it.
[[nodiscard]] inline double measure_links_at_once(std::span<DeviceId const> devices,
                                                  Bytes bytes = Bytes{64} << 20) {
  constexpr int repetitions = 3;
  constexpr int copies = 4;
  using Clock = std::chrono::steady_clock;
  struct Link {
    Link(DeviceId named, Bytes size) : device(named), host(2 * size), there(named, 2 * size) {}
    DeviceId device;
    PinnedMemory host;
    DeviceMemory there;
    Stream up;
    Stream down;
  };
  std::deque<Link> links;
  for (auto const device : std::set<DeviceId>(devices.begin(), devices.end())) {
    CurrentDevice const current(device);
    links.emplace_back(device, bytes);
  }
  double best = 0;
  for (int r = 0; r < repetitions; ++r) {
    auto const begin = Clock::now();
    for (auto& link : links) {
      CurrentDevice const current(link.device);
      auto* const here = link.host.bytes().data();
      auto* const there = link.there.bytes().device_pointer();
      for (int i = 0; i < copies; ++i) {
        check(::cudaMemcpyAsync(there, here, bytes, ::cudaMemcpyHostToDevice, link.up.get()),
              "cudaMemcpyAsync");
        check(::cudaMemcpyAsync(
                  here + bytes, there + bytes, bytes, ::cudaMemcpyDeviceToHost, link.down.get()),
              "cudaMemcpyAsync");
      }
    }
    for (auto& link : links) {
      CurrentDevice const current(link.device);
      check(::cudaStreamSynchronize(link.up.get()), "cudaStreamSynchronize");
      check(::cudaStreamSynchronize(link.down.get()), "cudaStreamSynchronize");
    }
    auto const seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::max(best, static_cast<double>(2 * copies * bytes * links.size()) / seconds);
  }
  return best;
}

}  // namespace roundpipe::cu
