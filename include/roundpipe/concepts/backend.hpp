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
#include <roundpipe/core/tensor.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace roundpipe {

/// What a plan needs to know about a device.
struct DeviceProperties {
  std::string name;
  Bytes memory_bytes = 0;                 ///< What arenas may use.
  double flops_per_second = 1e12;         ///< A rough peak; only for estimated costs.
  double memory_bytes_per_second = 1e11;  ///< The peak of its memory: of estimated costs, and of
                                          ///< what copies leave to compute.
  double upload_bytes_per_second = 0;     ///< 0: unknown or unlimited.
  double download_bytes_per_second = 0;   ///< 0: unknown or unlimited.
  /// The shares of these rates that remain while copies run both ways; in (0, 1].
  double upload_share_both_ways = 1;
  double download_share_both_ways = 1;
  /// Of all devices of the backend at once, in one direction alone; 0: unknown or unlimited.
  double host_upload_bytes_per_second = 0;
  double host_download_bytes_per_second = 0;
  /// The same, up and down together; 0: unknown or unlimited.
  double host_bytes_per_second = 0;
  /// Of that rate, what a download gets where an upload gets 1.
  double host_download_weight = 1;
  /// The rate at which the host reads and writes memory while it sums gradients or updates weights
  /// and copies run; 0: unknown, and such work takes no time in forecasts.
  double host_work_bytes_per_second = 0;
  /// What such work, which takes the host's memory from copies, leaves of their rates; in (0, 1].
  double upload_share_beside_work = 1;
  double download_share_beside_work = 1;
  /// Whether a stream that has its next copy ready when one ends goes on before other streams; else
  /// copies take turns in the order in which they become ready. For forecasts.
  bool streams_keep_engines = false;
  /// Whether a stream of any device copies to the memory of any other one (\ref CopiesToPeers), and
  /// the rate of such copies from one device; 0: unknown or unlimited.
  bool reaches_peers = false;
  double peer_bytes_per_second = 0;
};

/// \brief A point in a stream's work.
///
/// Semantics:
/// 1. An event that was never recorded counts as complete: waiting for it returns at once; reason:
///    CUDA's events behave so. Whoever needs an order must issue the record first.
/// 2. A wait captures the latest record at the time of the call; later records do not change it.
/// 3. `wait()` blocks the calling host thread; `ready()` does not. After the backend has failed,
///    both throw its first error.
/// 4. `seconds_since(earlier)` is the device time between two completed records; both events belong
///    to one device.
template <class E>
concept BackendEvent = std::movable<E> && requires(E& event, E const& other) {
  event.wait();
  { event.ready() } -> std::same_as<bool>;
  { other.seconds_since(other) } -> std::convertible_to<double>;
};

/// \brief A counter that the host raises and streams wait for.
///
/// Semantics:
/// 1. `signal(n)` raises the value to n; values never shrink.
/// 2. After the backend's `abort()` a fence lets every waiter pass; reason: teardown must not hang.
template <class F>
concept BackendFence =
    std::movable<F> && requires(F& fence, std::uint64_t value) { fence.signal(value); };

/// \brief A FIFO of work on one device.
///
/// Semantics:
/// 1. Every member enqueues and returns. Work runs in order, each piece after the one before it.
/// 2. `copy` moves the bytes of the source to a destination of equal size. Host memory comes from
///    `allocate_host`. Source and destination must live until the copy has run.
/// 3. `fill` sets every byte.
/// 4. `round` rounds fp32 to bf16 or to f16, to nearest, ties to even; values beyond the narrow
///    type's range become infinite.
/// 5. Copies of one direction on one device share a copy engine, which never preempts a copy in
///    flight.
///
/// Opt-ins: `annotate` (\ref HasAnnotate); `copy` of tensors and `add` (\ref AddsTensors);
/// `copy_to_peer` (\ref CopiesToPeers).
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

/// \brief What plans need of devices: their number, and the properties of each.
///
/// Opt-ins, which are also those of \ref Backend: `host_overhead_bytes` (\ref HasHostOverhead),
/// `overhead_bytes` (\ref HasDeviceOverhead), `page_table_share` (\ref HasPageTableShare),
/// `unloaded_code_bytes` (\ref HasUnloadedCode).
///
/// Satisfied by: every `Backend`, and figures of devices that are not there.
template <class D>
concept DeviceList = requires(D& devices, DeviceId device) {
  { devices.device_count() } -> std::convertible_to<std::size_t>;
  { devices.device_properties(device) } -> std::convertible_to<DeviceProperties>;
};

/// \brief A set of devices, numbered from 0.
///
/// Semantics:
/// 1. `make_stream(device, kind)` serves one lane. Only streams of its own device record the event
///    of `make_event(device)`; streams of any device and the host wait for it.
/// 2. `allocate_device` and `allocate_host` return owners of one slab each, with `bytes()` (a
///    `DeviceBytes` or `HostBytes`). Slabs are aligned to 256 bytes and touched (the host's:
///    zeroed). When no such slab is available, they throw `Error` with a code equal to
///    `std::errc::not_enough_memory`.
/// 3. Errors of enqueued work are sticky: every later wait throws the first one. `abort()` ends all
///    pending waits, lets streams drain, and is final, unless there is a `resume()`.
/// 4. Everything that a backend made is destroyed before the backend.
///
/// Opt-ins: `resume` (\ref HasResume), `make_held_fence` (\ref HasHeldFence), `before_host_action`
/// (\ref HasHostActionHook), `compute_actions_ahead` (\ref HasActionLimit), `warm_up_seconds` (\ref
/// HasWarmUp), `limit_memory` (\ref HasMemoryLimit), and those of \ref DeviceList.
template <class B>
concept Backend =
    DeviceList<B> && requires(B& backend, DeviceId device, LaneKind kind, Bytes bytes) {
      typename B::Stream;
      typename B::Event;
      typename B::Fence;
      requires BackendEvent<typename B::Event>;
      requires BackendFence<typename B::Fence>;
      requires BackendStream<typename B::Stream, typename B::Event, typename B::Fence>;
      { backend.make_stream(device, kind) } -> std::same_as<typename B::Stream>;
      { backend.make_event(device) } -> std::same_as<typename B::Event>;
      { backend.make_fence() } -> std::same_as<typename B::Fence>;
      { backend.allocate_device(device, bytes).bytes() } -> std::convertible_to<DeviceBytes>;
      { backend.allocate_host(bytes).bytes() } -> std::convertible_to<HostBytes>;
      backend.abort();
    };

// The opt-ins. Their names are reserved: a pipeline, or a search, does not compile on devices with
// a public member that has such a name, but another form.

/// \brief A stream that names the following work for errors and profilers; null ends the name.
template <class S>
concept HasAnnotate = requires(S& stream, char const* label) { stream.annotate(label); };

/// \brief A stream that copies and adds tensors of its own device: `copy(to, from)` and `add(to,
/// from)`, which adds each element of \p from to that of \p to and rounds the sum once to their
/// type (to nearest, ties to even). Both refuse tensors of other sizes or types, and integers
/// cannot be added. Reason: skip connections carry tensors past layers, and add up their gradients.
template <class S>
concept AddsTensors = requires(S& stream, DeviceTensor const& to, DeviceTensor const& from) {
  stream.copy(to, from);
  stream.add(to, from);
};

/// \brief A stream that copies bytes of its own device to as many of another one's:
/// `copy_to_peer(to, from)`. Both must live until the copy has run. Reason: a boundary whose reader
/// is on another device need not pass through the host. Such copies share an engine of their own,
/// and run where `DeviceProperties::reaches_peers` is true.
template <class S>
concept CopiesToPeers = requires(S& stream, DeviceBytes to, DeviceSpan<std::byte const> from) {
  stream.copy_to_peer(to, from);
};

/// \brief Devices that tell what the process holds of the host's memory besides slabs. The host's
/// budget then counts it, too.
template <class D>
concept HasHostOverhead = requires(D& devices) {
  { devices.host_overhead_bytes() } -> std::convertible_to<Bytes>;
};

/// \brief Devices that tell what the process holds of each besides slabs; reason: a budget counts
/// it, too.
template <class D>
concept HasDeviceOverhead = requires(D& devices, DeviceId device) {
  { devices.overhead_bytes(device) } -> std::convertible_to<Bytes>;
};

/// \brief Devices that tell, by `static constexpr double page_table_share`, how many bytes of a
/// device map a byte of host memory; reason: a budget counts them, too.
template <class D>
concept HasPageTableShare = requires {
  { D::page_table_share } -> std::convertible_to<double>;
  typename std::enable_if_t<(D::page_table_share >= 0)>;
};

/// \brief Devices that tell, by `static constexpr Bytes unloaded_code_bytes`, what layers load of a
/// device when they first run; reason: the least budget that a refusal names before must do
/// afterwards.
template <class D>
concept HasUnloadedCode = requires {
  { D::unloaded_code_bytes } -> std::convertible_to<Bytes>;
  typename std::integral_constant<Bytes, D::unloaded_code_bytes>;
};

/// \brief A backend that works again after an error or an `abort()`: `resume()` is called when all
/// its streams are destroyed, and throws where devices are broken for good. Memory and events stay
/// valid, fences are made anew; reason: a training may go on after a bad batch.
template <class B>
concept HasResume = requires(B& backend) { backend.resume(); };

/// \brief A backend that makes fences that ignore `abort()`: their maker signals the largest
/// `std::int64_t` to let all waiters pass; reason: where enqueued work still runs after an
/// `abort()`, copies that wait for the optimizer must not start while it finishes a step.
template <class B>
concept HasHeldFence = requires(B& backend) {
  { backend.make_held_fence() } -> std::same_as<typename B::Fence>;
};

/// \brief A backend whose operations keep the process within a budget: `limit_memory(most)` says
/// how many bytes it may hold of each device, 0: all that there is; reason: a library that tries
/// variants of an operation when it meets a new shape takes memory of its own for that.
template <class B>
concept HasMemoryLimit = requires(B& backend, Bytes most) { backend.limit_memory(most); };

/// \brief A backend that is called on the thread of a host lane before each action of the lane; a
/// test double may delay the lane there.
template <class B>
concept HasHostActionHook =
    requires(B& backend, LaneKind lane) { backend.before_host_action(lane); };

/// \brief A backend that limits, by `static constexpr std::size_t compute_actions_ahead` (at least
/// 4), how many compute actions are issued before the first of them is done; reason: a driver whose
/// queue is full blocks the thread that fills it, perhaps while it holds locks that others need.
template <class B>
concept HasActionLimit = requires {
  { B::compute_actions_ahead } -> std::convertible_to<std::size_t>;
  typename std::enable_if_t<(B::compute_actions_ahead >= 4)>;
};

/// \brief A backend that says, by `static constexpr double warm_up_seconds`, for how long a model's
/// layers run when costs are measured, so that the device reaches its lasting speed, and that new
/// kinds of work may wait until the device is idle. A pipeline then runs every layer once on every
/// device before step 1. A new shape drains the pipeline and runs each layer once again.
template <class B>
concept HasWarmUp = requires {
  { B::warm_up_seconds } -> std::convertible_to<double>;
  typename std::enable_if_t<(B::warm_up_seconds >= 0)>;
};

}  // namespace roundpipe
