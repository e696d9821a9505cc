// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/backend/host_event.hpp>
#include <roundpipe/backend/host_fence.hpp>
#include <roundpipe/backend/host_lane.hpp>
#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE HostStream& HostStream::operator=(HostStream&& other) noexcept {
  HostStream taken(std::move(other));
  lane_.swap(taken.lane_);
  return *this;
}

ROUNDPIPE_INLINE HostStream::~HostStream() {
  if (lane_) {
    lane_->close();
    if (lane_->shared().status->stopped()) {
      lane_->join();
    }
  }
}

ROUNDPIPE_INLINE void HostStream::record(HostEvent& event) {
  auto const& state = event.state_;
  if (!lane_) {
    state->complete(state->issue());
    return;
  }
  require_own(state->monitor(), "a stream cannot record an event of another backend");
  require(state->device() == lane_->device(),
          Errc::invalid_argument,
          "a stream cannot record an event of another device");
  control([state, record = state->issue()] { state->complete(record); });
}

ROUNDPIPE_INLINE void HostStream::wait(HostEvent const& event) {
  auto const& state = event.state_;
  auto const record = state->latest();
  if (!lane_) {
    state->wait(record);
    return;
  }
  require_own(state->monitor(), "a stream cannot wait for an event of another backend");
  control([state, record] { state->wait(record); });
}

ROUNDPIPE_INLINE void HostStream::wait(HostFence const& fence, std::uint64_t value) {
  auto const& state = fence.state_;
  if (!lane_) {
    state->wait(value);
    return;
  }
  require_own(state->monitor(), "a stream cannot wait for a fence of another backend");
  control([state, value] { state->wait(value); });
}

ROUNDPIPE_INLINE void HostStream::copy(DeviceBytes to, HostSpan<std::byte const> from) {
  require(to.size() == from.size(),
          Errc::invalid_argument,
          "the source and the destination of a copy must have the same size");
  transfer(detail::HostCopyDirection::up, to.device_pointer(), from.data(), from.size());
}

ROUNDPIPE_INLINE void HostStream::copy(HostBytes to, DeviceSpan<std::byte const> from) {
  require(to.size() == from.size(),
          Errc::invalid_argument,
          "the source and the destination of a copy must have the same size");
  transfer(detail::HostCopyDirection::down, to.data(), from.device_pointer(), from.size());
}

ROUNDPIPE_INLINE void HostStream::copy_to_peer(DeviceBytes to, DeviceSpan<std::byte const> from) {
  require(to.size() == from.size(),
          Errc::invalid_argument,
          "the source and the destination of a copy must have the same size");
  transfer(
      detail::HostCopyDirection::peer, to.device_pointer(), from.device_pointer(), from.size());
}

ROUNDPIPE_INLINE void HostStream::copy(DeviceTensor const& to, DeviceTensor const& from) {
  require_alike(to, from);
  launch([to, from] {
    if (to.size_bytes() > 0) {
      std::memcpy(to.device_pointer(), from.device_pointer(), to.size_bytes());
    }
  });
}

ROUNDPIPE_INLINE void HostStream::add(DeviceTensor const& to, DeviceTensor const& from) {
  require_alike(to, from);
  require(is_floating(to.dtype()), Errc::invalid_argument, "a stream adds floating tensors alone");
  visit_floating(to.dtype(), [&]<class T>(T) {
    launch([to = to.as<T>(), from = from.as<T const>()] {
      for (std::size_t i = 0; i < to.size(); ++i) {
        to[i] = T(to[i] + from[i]);
      }
    });
  });
}

ROUNDPIPE_INLINE void HostStream::fill(DeviceBytes to, std::byte value) {
  launch([to, value] {
    if (!to.empty()) {
      std::memset(to.device_pointer(), std::to_integer<int>(value), to.size());
    }
  });
}

ROUNDPIPE_INLINE void HostStream::annotate(char const* label) {
  if (lane_ && label != nullptr) {
    lane_->annotate(label);
  }
}

ROUNDPIPE_INLINE void HostStream::synchronize() {
  if (lane_) {
    lane_->drain();
    lane_->shared().status->throw_if_stopped();
  }
}

ROUNDPIPE_INLINE void HostStream::require_own(detail::HostMonitor const& monitor,
                                              char const* message) const {
  require(monitor.status() == lane_->shared().status, Errc::invalid_argument, message);
}

ROUNDPIPE_INLINE void HostStream::transfer(detail::HostCopyDirection direction,
                                           std::byte* to,
                                           std::byte const* from,
                                           Bytes bytes) {
  if (lane_) {
    launch([lane = lane_.get(), direction, to, from, bytes] {
      lane->shared().link.transfer(lane->device(), direction, to, from, bytes);
    });
  } else if (bytes > 0) {
    std::memcpy(to, from, bytes);
  }
}

}  // namespace roundpipe
