// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Measures the links of a device: to the host, and to another device.

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

namespace roundpipe::cu {

/// Bytes a second of large copies.
struct LinkSpeed {
  double upload_bytes_per_second = 0;
  double download_bytes_per_second = 0;
};

/// Copies blocks of \p bytes in each direction, one after the other, and takes the fastest; takes
/// some 20 ms. The calling thread's current device stays. \throws Error when there is no memory for
/// it.
[[nodiscard]] inline LinkSpeed measure_link(DeviceId device, Bytes bytes = Bytes{32} << 20) {
  constexpr int repetitions = 16;  // others may use the host's memory meanwhile
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

/// The bytes a second of the fastest of some large copies from \p device to \p peer, whose memory
/// is open to it; takes a few ms. The calling thread's current device stays. \throws Error when
/// there is no memory for it.
[[nodiscard]] inline double measure_peer(DeviceId device,
                                         DeviceId peer,
                                         Bytes bytes = Bytes{64} << 20) {
  constexpr int repetitions = 8;
  DeviceMemory const there(peer, bytes);
  CurrentDevice const current(device);
  DeviceMemory const here(device, bytes);
  Stream const stream;
  check(::cudaMemsetAsync(here.bytes().device_pointer(), 0, bytes, stream.get()),
        "cudaMemsetAsync");  // initcheck demands that what copies read was written
  detail::Stopwatch stopwatch;
  double best = 0;
  for (int i = 0; i < repetitions; ++i) {
    stopwatch.start(stream);
    check(::cudaMemcpyAsync(there.bytes().device_pointer(),
                            here.bytes().device_pointer(),
                            bytes,
                            ::cudaMemcpyDefault,
                            stream.get()),
          "cudaMemcpyAsync");
    best = std::max(best, static_cast<double>(bytes) / stopwatch.stop(stream));
  }
  return best;
}

}  // namespace roundpipe::cu
