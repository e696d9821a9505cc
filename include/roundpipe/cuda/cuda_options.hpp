// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a program may choose about the CUDA backend: devices, budgets, streams and memory of
/// its own.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/cuda_resources.hpp>
#include <roundpipe/cuda/device/device.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace roundpipe::cu {

/// Options of \ref CudaBackend.
struct CudaBackendOptions {
  /// CUDA's numbers of the devices; the backend numbers them from 0 in this order. Empty: all that
  /// the process sees. A device named twice is two workers that share it, each with the whole
  /// budget. Issuing threads then wait for fences on the host, since a device runs only so many
  /// streams at once.
  std::vector<DeviceId> devices{};
  /// What allocations may take of each device, whatever the card has. Context, modules and handles
  /// of libraries come on top. 0: what is free, less \ref device_reserve_bytes.
  Bytes device_memory_bytes = 0;
  Bytes device_reserve_bytes = Bytes{1} << 30;  ///< Left for contexts, modules and libraries.
  /// The caller's own streams. The backend calls it with a device by the backend's number (its
  /// place in \ref devices) and the kind of a lane. It returns a stream of that device that
  /// outlives the backend, or null: the backend then makes one.
  std::function<::cudaStream_t(DeviceId, LaneKind)> stream{};
  /// Host memory that the caller has pinned (slabs of weights, say), each aligned to 256 bytes. The
  /// backend cuts slabs that fit from it, and clears them. A pipeline asks for a few small slabs,
  /// then for all that its plan's ledger wants, in slabs of at most 64 GiB. The memory must outlive
  /// the slabs; the backend never uses a part of it twice.
  std::vector<HostBytes> pinned{};
  /// Whether to time copies, for plans and forecasts: once for all backends that share resources.
  bool measures_links = true;
  /// Whether devices copy to each other's memory, where all of them can; else what one makes for
  /// another goes through the host.
  bool reaches_peers = true;
  bool waits_on_device = true;  ///< False: issuing threads wait for fences, as with old drivers.
  /// Handles of libraries and chosen algorithms to share with other backends, so that all of them
  /// compute the same bits; and speeds of links, which are measured once. Null: the backend has its
  /// own, and chooses for itself.
  std::shared_ptr<CudaResources> resources{};
};

/// The first \p count devices that the process sees behind \p before others, for
/// \ref CudaBackendOptions.
/// \throws Error (invalid_argument) when there are fewer, or as \ref device_count().
[[nodiscard]] inline std::vector<DeviceId> first_devices(std::size_t count,
                                                         std::size_t before = 0) {
  auto const present = device_count();
  if (before + count > present) {
    throw Error(Errc::invalid_argument,
                std::to_string(count) + " CUDA devices are asked for" +
                    (before > 0 ? " behind the first " + std::to_string(before) : "") +
                    ", and there " + (present == 1 ? "is 1" : "are " + std::to_string(present)));
  }
  std::vector<DeviceId> devices;
  for (std::size_t d = before; d < before + count; ++d) {
    devices.emplace_back(d);
  }
  return devices;
}

}  // namespace roundpipe::cu
