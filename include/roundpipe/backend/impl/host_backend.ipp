// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/backend/host_event.hpp>
#include <roundpipe/backend/host_fence.hpp>
#include <roundpipe/backend/host_lane.hpp>
#include <roundpipe/backend/host_memory.hpp>
#include <roundpipe/backend/host_options.hpp>
#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE HostBackend::HostBackend(Options options)
    : shared_(std::make_shared<detail::HostShared>(std::move(options))) {
  for (std::size_t device = 0; device < device_count(); ++device) {
    device_memory_.push_back(
        std::make_shared<detail::HostPool>(shared_->status,
                                           "memory of host device " + std::to_string(device),
                                           shared_->options.device_memory_bytes));
  }
  auto const budget = shared_->options.host_memory_bytes;
  host_memory_ = std::make_shared<detail::HostPool>(
      shared_->status, "host memory", budget > 0 ? budget : detail::HostPool::unlimited);
}

ROUNDPIPE_INLINE HostBackend::~HostBackend() {
  abort();
  for (auto const& lane : lanes_) {
    lane->close();
  }
  for (auto const& lane : lanes_) {
    lane->join();
  }
}

ROUNDPIPE_INLINE DeviceProperties HostBackend::device_properties(DeviceId device) const {
  check_device(device);
  auto const& options = shared_->options;
  return {.name = "host device " + std::to_string(device.value()),
          .memory_bytes = options.device_memory_bytes,
          .flops_per_second = options.flops_per_second,
          .memory_bytes_per_second = options.memory_bytes_per_second,
          .upload_bytes_per_second = options.link.upload_bytes_per_second,
          .download_bytes_per_second = options.link.download_bytes_per_second,
          .host_bytes_per_second = options.root_bytes_per_second,
          .reaches_peers = options.reaches_peers,
          .peer_bytes_per_second = options.link.peer_bytes_per_second};
}

ROUNDPIPE_INLINE HostBackend::Stream HostBackend::make_stream(DeviceId device, LaneKind kind) {
  check_device(device);
  require(static_cast<std::size_t>(kind) < device_lane_count,
          Errc::invalid_argument,
          "a stream needs a device lane, not a host lane");
  auto lane = std::make_shared<detail::HostLane>(shared_, device, kind);
  std::lock_guard const guard(mutex_);
  std::erase_if(lanes_, [](auto const& old) { return old->finished(); });
  lanes_.push_back(lane);
  return Stream(std::move(lane));
}

ROUNDPIPE_INLINE void HostBackend::before_host_action(LaneKind kind) const {
  if (shared_->options.delay) {
    std::this_thread::sleep_for(shared_->options.delay(DeviceId::none(), kind));
  }
}

ROUNDPIPE_INLINE void HostBackend::check_device(DeviceId device) const {
  if (!device.valid() || device.index() >= device_count()) {
    throw Error(Errc::invalid_argument,
                "there is no device " + std::to_string(device.value()) + "; the backend has " +
                    std::to_string(device_count()));
  }
}

}  // namespace roundpipe
