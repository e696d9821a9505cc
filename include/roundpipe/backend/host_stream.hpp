// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Streams of the host backend: work that a thread runs in order, or the caller at once.

#include <roundpipe/backend/host_event.hpp>
#include <roundpipe/backend/host_fence.hpp>
#include <roundpipe/backend/host_lane.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace roundpipe {

/// \brief A FIFO of work on one device, run by a thread of its own; models BackendStream.
///
/// Streams come from \ref HostBackend::make_stream(). Every member but \ref synchronize() enqueues
/// and returns; spans must live until the work has run. Work that throws stops the backend: see
/// \ref HostBackend. Members may be called from several threads at once, also from enqueued work.
///
/// A default-constructed (or moved-from) stream is *inline*: it runs everything at once on the
/// caller's thread, and lets exceptions of the work through to the caller; its waits block.
///
/// The destructor lets enqueued work run on: what that uses must live on, too. Only after the
/// backend has stopped it waits for the piece in flight, so that nothing is used after it.
class HostStream {
 public:
  /// An inline stream.
  HostStream() noexcept = default;
  HostStream(HostStream&&) noexcept = default;
  HostStream& operator=(HostStream&& other) noexcept;
  ~HostStream();

  /// Enqueues \p f, which is called once and then destroyed. It costs no allocation when it is
  /// small (detail::HostTask::inline_bytes) and moves without throwing.
  template <class F>
    requires std::move_constructible<F> && std::invocable<F&>
  void launch(F f) {
    if (lane_) {
      lane_->enqueue(detail::HostTaskKind::work, detail::HostTask(std::move(f)));
    } else {
      detail::call_kernel(f);
    }
  }

  /// Records \p event: it is complete when all that was enqueued before has run.
  /// \throws Error (invalid_argument) when the event is another device's or another backend's.
  void record(HostEvent& event);

  /// Lets what is enqueued later wait for \p event's latest record so far; for none if there is
  /// none. \throws Error (invalid_argument) when the event is another backend's.
  void wait(HostEvent const& event);

  /// Lets what is enqueued later wait until \p fence is at least \p value.
  /// \throws Error (invalid_argument) when the fence is another backend's.
  void wait(HostFence const& fence, std::uint64_t value);

  /// Copies \p from to the device: an upload, on the device's upload engine.
  /// \throws Error (invalid_argument) when the sizes differ.
  void copy(DeviceBytes to, HostSpan<std::byte const> from);

  /// Copies \p from to the host: a download, on the device's download engine.
  /// \throws Error (invalid_argument) when the sizes differ.
  void copy(HostBytes to, DeviceSpan<std::byte const> from);

  /// Sets every byte of \p to.
  void fill(DeviceBytes to, std::byte value);

  /// Rounds every number of \p from, to nearest, ties to even.
  /// \throws Error (invalid_argument) when the sizes differ.
  void round(DeviceSpan<BFloat16> to, DeviceSpan<float const> from) { round_all(to, from); }
  /// Likewise; magnitudes from 65520 on become infinite.
  void round(DeviceSpan<Float16> to, DeviceSpan<float const> from) { round_all(to, from); }

  /// Names the work that is enqueued from now on in the message of its errors. \p label must live
  /// until that work has run; null changes nothing.
  void annotate(char const* label);

  /// Blocks until all that was enqueued has run, or has been dropped because the backend stopped.
  /// Not to be called from enqueued work. \throws Error with what stopped the backend.
  void synchronize();

 private:
  friend class HostBackend;

  explicit HostStream(std::shared_ptr<detail::HostLane> lane) noexcept : lane_(std::move(lane)) {}

  void require_own(detail::HostMonitor const& monitor, char const* message) const;

  template <class Narrow>
  void round_all(DeviceSpan<Narrow> to, DeviceSpan<float const> from) {
    require(to.size() == from.size(), Errc::invalid_argument, "a rounding between unequal sizes");
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

static_assert(BackendStream<HostStream, HostEvent, HostFence>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_stream.ipp>
#endif
