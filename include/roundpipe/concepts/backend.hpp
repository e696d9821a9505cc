// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a set of devices must offer: streams, events, fences, memory and copies.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/core/span.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace roundpipe {

/// What a plan needs to know of a device.
struct DeviceProperties {
  std::string name;
  Bytes memory_bytes = 0;                 ///< What arenas may take.
  double flops_per_second = 1e12;         ///< A rough peak, for estimated costs only.
  double memory_bytes_per_second = 1e11;  ///< The same of its memory.
  double upload_bytes_per_second = 0;     ///< 0: unknown or unlimited.
  double download_bytes_per_second = 0;   ///< 0: unknown or unlimited.
};

/// \brief A point in a stream's work.
///
/// Semantics:
/// 1. An event that was never recorded counts as complete: waiting for it returns at once; reason:
///    so do CUDA's, and what must not happen early has to be issued first.
/// 2. A wait captures the latest record at the time of the call; later records do not move it.
/// 3. `wait()` blocks the calling host thread; `ready()` does not. Both throw the backend's first
///    error once it has failed.
/// 4. `seconds_since(earlier)` is the device time between two completed records of events of one
///    device.
template <class E>
concept BackendEvent = std::movable<E> && requires(E& event, E const& other) {
  event.wait();
  { event.ready() } -> std::same_as<bool>;
  { other.seconds_since(other) } -> std::convertible_to<double>;
};

/// \brief A counter that the host raises and streams wait for.
///
/// Semantics:
/// 1. `signal(n)` raises the value to n; values only grow.
/// 2. After the backend's `abort()` a fence lets every waiter pass; reason: teardown must not hang.
template <class F>
concept BackendFence =
    std::movable<F> && requires(F& fence, std::uint64_t value) { fence.signal(value); };

/// \brief A FIFO of work on one device.
///
/// Semantics:
/// 1. Every member enqueues and returns; work starts in order, each piece after the one before it.
/// 2. `copy` moves the source's bytes to a destination of equal size; host memory comes from
///    `allocate_host`; both must live until the copy has run.
/// 3. `fill` sets every byte.
/// 4. `round` rounds fp32 to bf16 or to f16, to nearest, ties to even; what is beyond the narrow
///    type's range becomes infinite.
/// 5. Copies of one direction on one device share a copy engine, and one in flight is never
///    preempted.
///
/// Opt-in: `annotate(char const* label)` names the work that follows, for errors and profilers;
/// null says that the named work ends.
template <class S, class Event, class Fence>
concept BackendStream = std::movable<S> && requires(S& stream,
                                                    Event& event,
                                                    Fence const& fence,
                                                    std::uint64_t value,
                                                    DeviceBytes device,
                                                    DeviceSpan<std::byte const> device_source,
                                                    HostBytes host,
                                                    HostSpan<std::byte const> host_source,
                                                    DeviceSpan<float const> wide,
                                                    DeviceSpan<BFloat16> narrow,
                                                    DeviceSpan<Float16> half) {
  stream.record(event);
  stream.wait(event);
  stream.wait(fence, value);
  stream.copy(device, host_source);
  stream.copy(host, device_source);
  stream.fill(device, std::byte{});
  stream.round(narrow, wide);
  stream.round(half, wide);
};

/// \brief A set of devices, numbered from 0.
///
/// Semantics:
/// 1. `make_stream(device, kind)` serves one lane. `make_event(device)` may be recorded on that
///    device's streams only, and waited for by any device's streams and by the host.
/// 2. `allocate_device` and `allocate_host` return owners of one slab each, aligned to 256 bytes
///    and touched (the host's: zeroed), with `bytes()` (a `DeviceBytes` or `HostBytes`); they throw
///    `Error` with a code equal to `std::errc::not_enough_memory` when there is no such slab.
/// 3. Errors of enqueued work are sticky: every later wait throws the first one. `abort()` makes
///    all pending waits end, lets streams drain, and is final.
/// 4. Everything made by a backend is destroyed before the backend.
///
/// Opt-ins:
/// - `make_held_fence()` makes a fence that `abort()` leaves as it is: whoever made it signals the
///   largest `std::int64_t` when all may pass; reason: where enqueued work still runs after an
///   `abort()`, copies that wait for the optimizer must not go on while it finishes a step.
/// - `before_host_action(LaneKind)` is called on the thread of a host's lane before each of its
///   actions; a test double may delay it there.
/// - `static constexpr std::size_t compute_actions_ahead` (at least 4) says how many compute
///   actions are to be issued before the first of them is done; reason: a driver whose queue is
///   full blocks the thread that fills it, perhaps with locks that others wait for.
/// - `static constexpr double warm_up_seconds` says that a device must work for so long before it
///   is as fast as it stays, and that work of a new kind may wait for all that the device does:
///   then a pipeline runs every layer once on every device before step 1, and again, with nothing
///   else under way, for extents that come for the first time.
template <class B>
concept Backend = requires(B& backend, DeviceId device, LaneKind kind, Bytes bytes) {
  typename B::Stream;
  typename B::Event;
  typename B::Fence;
  requires BackendEvent<typename B::Event>;
  requires BackendFence<typename B::Fence>;
  requires BackendStream<typename B::Stream, typename B::Event, typename B::Fence>;
  { backend.device_count() } -> std::convertible_to<std::size_t>;
  { backend.device_properties(device) } -> std::convertible_to<DeviceProperties>;
  { backend.make_stream(device, kind) } -> std::same_as<typename B::Stream>;
  { backend.make_event(device) } -> std::same_as<typename B::Event>;
  { backend.make_fence() } -> std::same_as<typename B::Fence>;
  { backend.allocate_device(device, bytes).bytes() } -> std::convertible_to<DeviceBytes>;
  { backend.allocate_host(bytes).bytes() } -> std::convertible_to<HostBytes>;
  backend.abort();
};

}  // namespace roundpipe
