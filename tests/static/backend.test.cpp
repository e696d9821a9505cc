// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/concepts/backend.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <support/backend_archetype.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace {

using namespace roundpipe;
using test::BackendArchetype;
using test::EventArchetype;
using test::FenceArchetype;
using test::StreamArchetype;

static_assert(BackendEvent<EventArchetype>);
static_assert(BackendFence<FenceArchetype>);
static_assert(BackendStream<StreamArchetype, EventArchetype, FenceArchetype>);
static_assert(Backend<BackendArchetype>);

static_assert(BackendEvent<HostEvent>);
static_assert(BackendFence<HostFence>);
static_assert(BackendStream<HostStream, HostEvent, HostFence>);
static_assert(CopiesToPeers<HostStream>);
static_assert(!CopiesToPeers<StreamArchetype>, "an opt-in");
static_assert(Backend<HostBackend>);

// Figures of devices are enough for plans, but no backend.
struct DeviceFigures {
  std::size_t device_count() const;
  DeviceProperties device_properties(DeviceId) const;
};
struct FiguresWithoutCount {
  DeviceProperties device_properties(DeviceId) const;
};
static_assert(DeviceList<DeviceFigures>);
static_assert(DeviceList<DeviceFigures const>);
static_assert(DeviceList<BackendArchetype>);
static_assert(DeviceList<HostBackend>);
static_assert(!DeviceList<FiguresWithoutCount>);
static_assert(!DeviceList<StreamArchetype>);
static_assert(!Backend<DeviceFigures>);

static_assert(!Backend<int>);
static_assert(!Backend<StreamArchetype>);
static_assert(!BackendEvent<int>);
static_assert(!BackendEvent<FenceArchetype>);
static_assert(!BackendFence<EventArchetype>);
static_assert(!BackendStream<HostStream, EventArchetype, HostFence>, "events of another backend");
static_assert(!BackendStream<HostStream, HostEvent, FenceArchetype>, "fences of another backend");

// Events.
struct EventThatStays : EventArchetype {
  EventThatStays(EventThatStays&&) = delete;
};
struct EventWithoutReady {
  void wait();
  double seconds_since(EventWithoutReady const&) const;
};
struct EventReadyAsInt {
  void wait();
  int ready();
  double seconds_since(EventReadyAsInt const&) const;
};
struct EventWithoutTime {
  void wait();
  bool ready();
};
struct EventTimedByMutable {
  void wait();
  bool ready();
  double seconds_since(EventTimedByMutable&);
};
static_assert(!BackendEvent<EventThatStays>);
static_assert(!BackendEvent<EventWithoutReady>);
static_assert(!BackendEvent<EventReadyAsInt>);
static_assert(!BackendEvent<EventWithoutTime>);
static_assert(!BackendEvent<EventTimedByMutable>);

// Streams: each hides one of the archetype's members, or a set of overloads.
template <class S>
concept StreamOfArchetypes = BackendStream<S, EventArchetype, FenceArchetype>;

struct StreamWithoutRecord : StreamArchetype {
  void record() = delete;
};
struct StreamWithoutFences : StreamArchetype {
  void wait(EventArchetype&);
};
struct StreamWithoutEvents : StreamArchetype {
  void wait(FenceArchetype const&, std::uint64_t);
};
struct StreamWithoutDownload : StreamArchetype {
  void copy(DeviceBytes, HostSpan<std::byte const>);
};
struct StreamWithoutUpload : StreamArchetype {
  void copy(HostBytes, DeviceSpan<std::byte const>);
};
struct StreamThatWritesToItsSource : StreamArchetype {
  void copy(DeviceBytes, HostBytes);
  void copy(HostBytes, DeviceBytes);
};
struct StreamWithoutFill : StreamArchetype {
  void fill() = delete;
};
struct StreamWithoutRound : StreamArchetype {
  void round(DeviceSpan<float>, DeviceSpan<BFloat16 const>);
};
struct StreamThatRoundsToBFloat16Alone : StreamArchetype {
  void round(DeviceSpan<BFloat16>, DeviceSpan<float const>);
};
struct StreamThatRoundsToFloat16Alone : StreamArchetype {
  void round(DeviceSpan<Float16>, DeviceSpan<float const>);
};
static_assert(StreamOfArchetypes<StreamArchetype>);
static_assert(!StreamOfArchetypes<StreamWithoutRecord>);
static_assert(!StreamOfArchetypes<StreamWithoutFences>);
static_assert(!StreamOfArchetypes<StreamWithoutEvents>);
static_assert(!StreamOfArchetypes<StreamWithoutDownload>);
static_assert(!StreamOfArchetypes<StreamWithoutUpload>);
static_assert(!StreamOfArchetypes<StreamThatWritesToItsSource>);
static_assert(!StreamOfArchetypes<StreamWithoutFill>);
static_assert(!StreamOfArchetypes<StreamWithoutRound>);
static_assert(!StreamOfArchetypes<StreamThatRoundsToBFloat16Alone>);
static_assert(!StreamOfArchetypes<StreamThatRoundsToFloat16Alone>);

// Backends.
struct BackendWithoutAbort : BackendArchetype {
  void abort() = delete;
};
struct BackendWithoutFence : BackendArchetype {
  using Fence = void;
};
struct BackendWithOtherStreams : BackendArchetype {
  int make_stream(DeviceId, LaneKind);
};
struct BackendWithStreamsForAll : BackendArchetype {
  Stream make_stream(DeviceId);
};
struct BackendWithPlainDeviceNumbers : BackendArchetype {
  Event make_event(int);
};
struct BackendWithHostMemoryOnDevices : BackendArchetype {
  HostSlab allocate_device(DeviceId, Bytes);
};
struct BackendWithDeviceMemoryOnHost : BackendArchetype {
  DeviceSlab allocate_host(Bytes);
};
struct BackendWithBareMemory : BackendArchetype {
  HostBytes allocate_host(Bytes);
};
static_assert(!Backend<BackendWithoutAbort>);
static_assert(!Backend<BackendWithoutFence>);
static_assert(!Backend<BackendWithOtherStreams>);
static_assert(!Backend<BackendWithStreamsForAll>);
static_assert(!Backend<BackendWithPlainDeviceNumbers>);
static_assert(!Backend<BackendWithHostMemoryOnDevices>);
static_assert(!Backend<BackendWithDeviceMemoryOnHost>);
static_assert(!Backend<BackendWithBareMemory>);

// The opt-ins: the smallest backend has none of them, and another form does not count.
struct BackendWithOptIns : BackendArchetype {
  static constexpr float warm_up_seconds = 0;
  static constexpr int compute_actions_ahead = 4;
  static constexpr float page_table_share = 0;
  static constexpr int unloaded_code_bytes = 0;
  void resume();
  Fence make_held_fence();
  void before_host_action(LaneKind);
  int host_overhead_bytes();
  int overhead_bytes(DeviceId);
  void limit_memory(double);
};
struct BackendWithOtherOptIns : BackendArchetype {
  double warm_up_seconds = 0;
  static constexpr std::size_t compute_actions_ahead = 3;
  static constexpr double page_table_share = -1;
  inline static Bytes unloaded_code_bytes = 0;
  void resume(int);
  Stream make_held_fence();
  void before_host_action();
  void host_overhead_bytes();
  Bytes overhead_bytes(int);
  void limit_memory();
};
template <class B>
constexpr int opt_ins = HasWarmUp<B> + HasActionLimit<B> + HasPageTableShare<B> +
                        HasUnloadedCode<B> + HasHeldFence<B> + HasResume<B> + HasHostActionHook<B> +
                        HasHostOverhead<B> + HasDeviceOverhead<B> + HasMemoryLimit<B>;
static_assert(opt_ins<BackendArchetype> == 0);
static_assert(opt_ins<BackendWithOptIns> == 10);
static_assert(opt_ins<BackendWithOtherOptIns> == 0);

// The host backend's own promises.
static_assert(!std::movable<HostBackend>, "its streams share its state, but it owns their threads");
static_assert(std::is_nothrow_move_constructible_v<HostStream>);
static_assert(std::is_nothrow_move_assignable_v<HostStream>);
static_assert(!std::copy_constructible<HostStream>);
static_assert(!std::copy_constructible<HostEvent>);
static_assert(!std::copy_constructible<HostFence>);
static_assert(!std::copy_constructible<HostBackend::DeviceSlab>);
static_assert(std::is_nothrow_move_assignable_v<HostBackend::DeviceSlab>);
static_assert(std::default_initializable<HostStream>, "an inline stream");

template <class F>
concept Launchable = requires(HostStream& stream, F f) { stream.launch(f); };
static_assert(Launchable<void (*)()>);
static_assert(!Launchable<void (*)(int)>);
static_assert(!Launchable<int>);

}  // namespace
