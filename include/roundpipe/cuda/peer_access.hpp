// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Lets CUDA devices copy to each other's memory, and tells how fast.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/cuda_options.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/known_speeds.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <span>

namespace roundpipe::cu {

/// Opens the memory of each of \p devices to all others, for as long as the process runs. A device
/// named twice reaches itself. \returns Whether all pairs reach each other; if not, opens none.
/// \throws Error as CUDA says.
[[nodiscard]] inline bool open_to_peers(std::span<DeviceId const> devices) {
  auto const for_each_pair = [&](auto&& f) {
    return std::all_of(devices.begin(), devices.end(), [&](DeviceId device) {
      return std::all_of(devices.begin(), devices.end(), [&](DeviceId peer) {
        return device == peer || f(device, peer);
      });
    });
  };
  return for_each_pair(&can_access_peer) && for_each_pair([](DeviceId device, DeviceId peer) {
           CurrentDevice const current(device);
           auto const status = ::cudaDeviceEnablePeerAccess(peer.value(), 0);
           if (status == ::cudaErrorPeerAccessAlreadyEnabled) {
             (void)::cudaGetLastError();  // by another backend
           } else {
             check(status, "cudaDeviceEnablePeerAccess");
           }
           return true;
         });
}

/// Opens the devices of \p options to each other, where these want that and all can be, and says so
/// in their \p properties; with \p speeds also at what rate the first one copies to another.
/// \throws Error as \ref open_to_peers and \ref measure_peer do.
inline void set_peers(std::span<DeviceProperties> properties,
                      CudaBackendOptions const& options,
                      KnownSpeeds* speeds) {
  auto const& devices = options.devices;
  if (!options.reaches_peers || devices.size() < 2 || !open_to_peers(devices)) {
    return;
  }
  auto const other = std::find_if(
      devices.begin(), devices.end(), [&](DeviceId device) { return device != devices.front(); });
  auto const measures = speeds != nullptr && other != devices.end();
  auto const rate = measures ? speeds->peer(devices.front(), *other) : 0;
  for (auto& device : properties) {
    device.reaches_peers = true;
    device.peer_bytes_per_second = rate;
  }
}

}  // namespace roundpipe::cu
