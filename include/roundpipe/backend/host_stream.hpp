// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Streams of the host backend: a thread runs their work in order, or the caller at once.

#include <roundpipe/backend/host_event.hpp>
#include <roundpipe/backend/host_fence.hpp>
#include <roundpipe/backend/host_lane.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace roundpipe {

/// \brief A FIFO of work on one device, run by its own thread; models BackendStream.
///
/// Streams come from \ref HostBackend::make_stream(). Every member but \ref synchronize() enqueues
/// and returns; spans must live until the work has run. Work that throws stops the backend: see
/// \ref HostBackend. Several threads may call the members at once, also from enqueued work.
///
/// A default-constructed (or moved-from) stream is *inline*: it runs everything at once on the
/// caller's thread and lets exceptions of the work reach the caller; its waits block.
///
/// The destructor lets enqueued work run on, so everything that the work uses must live on. After
/// the backend has stopped, the destructor waits for the work in flight, so that nothing is used
/// later.
class HostStream {
 public:
  /// An inline stream.
  HostStream() noexcept = default;
  HostStream(HostStream&&) noexcept = default;
  HostStream& operator=(HostStream&& other) noexcept;
  ~HostStream();

  /// Enqueues \p f, which is called once and then destroyed. A small callable
  /// (detail::HostTask::inline_bytes) that moves without throwing costs no allocation.
  template <class F>
    requires std::move_constructible<F> && std::invocable<F&>
  void launch(F f) {
    if (lane_) {
      lane_->enqueue(detail::HostTaskKind::work, detail::HostTask(std::move(f)));
    } else {
      detail::call_kernel(f);
    }
  }

  /// Records \p event: it is complete when all work enqueued before has run.
  /// \throws Error (invalid_argument) when the event belongs to another device or backend.
  void record(HostEvent& event);

  /// Makes later work wait for the latest record of \p event so far, or for nothing if there is
  /// none. \throws Error (invalid_argument) when the event belongs to another backend.
  void wait(HostEvent const& event);

  /// Makes later work wait until \p fence is at least \p value.
  /// \throws Error (invalid_argument) when the fence belongs to another backend.
  void wait(HostFence const& fence, std::uint64_t value);

  /// Copies \p from to the device: an upload, on the device's upload engine.
  /// \throws Error (invalid_argument) when the sizes differ.
  void copy(DeviceBytes to, HostSpan<std::byte const> from);

  /// Copies \p from to the host: a download, on the device's download engine.
  /// \throws Error (invalid_argument) when the sizes differ.
  void copy(HostBytes to, DeviceSpan<std::byte const> from);

  /// Copies \p from, of this device, to another one, on this device's engine for peers.
  /// \throws Error (invalid_argument) when the sizes differ.
  void copy_to_peer(DeviceBytes to, DeviceSpan<std::byte const> from);

  /// Copies the elements of \p from, of the same device.
  /// \throws Error (invalid_argument) when the sizes or the types differ.
  void copy(DeviceTensor const& to, DeviceTensor const& from);

  /// Adds the elements of \p from to those of \p to; sums of 16-bit types are rounded once.
  /// \throws Error (invalid_argument) when the sizes or the types differ, or they are integers.
  void add(DeviceTensor const& to, DeviceTensor const& from);

  /// Sets every byte of \p to.
  void fill(DeviceBytes to, std::byte value);

  /// Rounds every number of \p from, to nearest, ties to even.
  /// \throws Error (invalid_argument) when the sizes differ.
  void round(DeviceSpan<BFloat16> to, DeviceSpan<float const> from) { round_all(to, from); }
  /// Rounds to f16 in the same way; magnitudes of 65520 and more become infinite.
  void round(DeviceSpan<Float16> to, DeviceSpan<float const> from) { round_all(to, from); }

  /// Names the following work in the message of its errors. \p label must live until the work has
  /// run; null changes nothing.
  void annotate(char const* label);

  /// Blocks until all enqueued work has run, or has been dropped because the backend stopped.
  /// Enqueued work must not call this. \throws Error with the cause of the stop.
  void synchronize();

 private:
  friend class HostBackend;

  explicit HostStream(std::shared_ptr<detail::HostLane> lane) noexcept : lane_(std::move(lane)) {}

  void require_own(detail::HostMonitor const& monitor, char const* message) const;

  template <class Narrow>
  void round_all(DeviceSpan<Narrow> to, DeviceSpan<float const> from) {
    require(to.size() == from.size(),
            Errc::invalid_argument,
            "the source and the destination of a rounding must have the same size");
    launch([to, from] {
      auto* const narrow = to.device_pointer();
      auto const* const wide = from.device_pointer();
      for (std::size_t i = 0; i < to.size(); ++i) {
        narrow[i] = Narrow(wide[i]);
      }
    });
  }

  template <class F>
  void control(F f) {
    lane_->enqueue(detail::HostTaskKind::control, detail::HostTask(std::move(f)));
  }

  void transfer(detail::HostCopyDirection direction,
                std::byte* to,
                std::byte const* from,
                Bytes bytes);

  std::shared_ptr<detail::HostLane> lane_;
};

static_assert(BackendStream<HostStream, HostEvent, HostFence> && AddsTensors<HostStream> &&
              CopiesToPeers<HostStream>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_stream.ipp>
#endif
