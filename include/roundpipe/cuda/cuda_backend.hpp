// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The CUDA devices of this machine as a backend.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/cuda_event.hpp>
#include <roundpipe/cuda/cuda_fence.hpp>
#include <roundpipe/cuda/cuda_status.hpp>
#include <roundpipe/cuda/cuda_stream.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/link_speed.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/device/stream_memory_ops.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::cu {

/// Options of \ref CudaBackend.
struct CudaBackendOptions {
  /// CUDA's numbers of the devices; the backend numbers them from 0 in this order. Empty: all that
  /// the process sees. One named twice is two workers that share it, each with the whole budget;
  /// their streams wait for fences on the host, since a device runs but so many streams at once.
  std::vector<DeviceId> devices{};
  /// What allocations may take of each device, whatever the card has. Context, modules and handles
  /// of libraries come on top. 0: what is free, less \ref device_reserve_bytes.
  Bytes device_memory_bytes = 0;
  Bytes device_reserve_bytes = Bytes{1} << 30;  ///< Left for contexts, modules and libraries.
  /// Streams of the caller's: called with a device by the backend's number (its place in
  /// \ref devices) and the kind of its lane, it returns a stream of that device which outlives the
  /// backend, or null for one of the backend's own.
  std::function<::cudaStream_t(DeviceId, LaneKind)> stream{};
  /// Host memory that the caller has pinned (weights' slabs, say), each aligned to 256 bytes. A
  /// slab that fits into what is left of one is cut from it, and cleared; a pipeline asks for a few
  /// small slabs and then for all that its plan's ledger wants, in slabs of at most 64 GiB. It must
  /// outlive the slabs, and is not used again for others.
  std::vector<HostBytes> pinned{};
  bool measures_links = true;   ///< How fast copies are, for plans and forecasts.
  bool waits_on_device = true;  ///< False: issuing threads wait for fences, as with old drivers.
};

/// The first \p count devices that the process sees, for \ref CudaBackendOptions.
/// \throws Error (invalid_argument) when there are fewer, or as \ref device_count().
[[nodiscard]] inline std::vector<DeviceId> first_devices(std::size_t count) {
  auto const present = device_count();
  if (count > present) {
    throw Error(Errc::invalid_argument,
                std::to_string(count) + " CUDA devices are asked for, and there " +
                    (present == 1 ? "is 1" : "are " + std::to_string(present)));
  }
  std::vector<DeviceId> devices;
  for (std::size_t d = 0; d < count; ++d) {
    devices.emplace_back(d);
  }
  return devices;
}

/// \brief CUDA devices as workers, numbered from 0; models Backend.
///
/// Streams have priorities: activations before compute before parameters and gradients. Memory
/// comes from plain allocations. An error of enqueued work breaks the device's context for good, as
/// CUDA says: what is asked of it later throws the same error.
///
/// After \ref abort() fences let all pass, nothing new is enqueued, kernels and copies that were
/// enqueued still run, and waits of the host throw Errc::aborted.
///
/// All members may be called from several threads at once. What a backend makes is destroyed before
/// it.
class CudaBackend {
 public:
  /// Power limits and clocks settle, and the first launch of a kernel loads it, which may wait for
  /// the whole device: for a stream too that waits for what the host would only do later.
  static constexpr double warm_up_seconds = 1;

  /// A layer takes 10 to 20 launches, and a device's queue holds about a thousand.
  static constexpr std::size_t compute_actions_ahead = 48;

  using Options = CudaBackendOptions;
  using Stream = CudaStream;
  using Event = CudaEvent;
  using Fence = CudaFence;

  /// Memory of one device, counted against its budget.
  class DeviceSlab {
   public:
    DeviceSlab(DeviceSlab&& other) noexcept
        : memory_(std::move(other.memory_)), used_(std::exchange(other.used_, nullptr)) {}
    DeviceSlab& operator=(DeviceSlab&& other) noexcept {
      DeviceSlab taken(std::move(other));
      std::swap(memory_, taken.memory_);
      std::swap(used_, taken.used_);
      return *this;
    }
    ~DeviceSlab() {
      if (used_ != nullptr) {
        used_->fetch_sub(memory_.bytes().size());
      }
    }
    [[nodiscard]] DeviceBytes bytes() const noexcept { return memory_.bytes(); }

   private:
    friend class CudaBackend;
    DeviceSlab(DeviceMemory memory, std::atomic<Bytes>* used) noexcept
        : memory_(std::move(memory)), used_(used) {}

    DeviceMemory memory_;
    std::atomic<Bytes>* used_ = nullptr;
  };

  /// Pinned host memory, the backend's own or a part of the caller's.
  class HostSlab {
   public:
    [[nodiscard]] HostBytes bytes() const noexcept {
      return borrowed_.empty() ? memory_.bytes() : borrowed_;
    }

   private:
    friend class CudaBackend;
    explicit HostSlab(PinnedMemory memory) noexcept : memory_(std::move(memory)) {}
    explicit HostSlab(HostBytes borrowed) noexcept : borrowed_(borrowed) {}

    PinnedMemory memory_;
    HostBytes borrowed_;
  };

  /// \throws Error (no such device) as \ref cu::device_count(); (invalid_argument) for a device
  ///         that is not there; (unsupported) for one below compute capability 8.0; (over_budget)
  ///         for a budget above what a device has free, less \ref
  ///         CudaBackendOptions::device_reserve_bytes. Each names what it wants and what is there.
  explicit CudaBackend(Options options = {})
      : options_(std::move(options)), status_(std::make_shared<detail::CudaStatus>()) {
    auto const present = cu::device_count();
    if (options_.devices.empty()) {
      options_.devices = first_devices(present);
    }
    for (auto const device : options_.devices) {
      if (!device.valid() || device.index() >= present) {
        throw Error(Errc::invalid_argument,
                    "there is no CUDA device " + std::to_string(device.value()) +
                        "; the process sees " + std::to_string(present));
      }
      open(device);
    }
    used_ = std::vector<std::atomic<Bytes>>(device_count());
  }
  CudaBackend(CudaBackend const&) = delete;
  CudaBackend& operator=(CudaBackend const&) = delete;
  ~CudaBackend() = default;

  [[nodiscard]] std::size_t device_count() const noexcept { return properties_.size(); }

  /// CUDA's own number of \p device. \throws Error (invalid_argument) when there is no such device.
  [[nodiscard]] DeviceId ordinal(DeviceId device) const {
    check_device(device);
    return options_.devices[device.index()];
  }

  /// Name, budget, the link's speed and rough peaks. \throws Error (invalid_argument) when there is
  /// no such device.
  [[nodiscard]] DeviceProperties device_properties(DeviceId device) const {
    check_device(device);
    return properties_[device.index()];
  }

  /// A new stream, or the caller's. \throws Error (invalid_argument) when there is no such
  /// device, \p kind is a lane of the host, or the caller's stream is another device's.
  [[nodiscard]] Stream make_stream(DeviceId device, LaneKind kind) {
    auto const cuda = ordinal(device);
    require(static_cast<std::size_t>(kind) < device_lane_count,
            Errc::invalid_argument,
            "a stream was asked for a lane that is none of a device's");
    auto const borrowed = options_.stream ? options_.stream(device, kind) : nullptr;
    if (borrowed != nullptr) {
      require_on(borrowed, device);
    }
    return {status_, cuda, priority(cuda, kind), borrowed, waits_on_device(cuda)};
  }

  /// A new event, not recorded. \throws Error (invalid_argument) when there is no such device.
  [[nodiscard]] Event make_event(DeviceId device) const { return {status_, ordinal(device)}; }

  /// A new fence, at 0.
  [[nodiscard]] Fence make_fence() const { return fence(true); }

  /// A new fence, at 0, that \ref abort leaves as it is: whoever made it opens it, by signalling
  /// the largest std::int64_t.
  [[nodiscard]] Fence make_held_fence() const { return fence(false); }

  /// A slab of \p bytes of \p device, content undefined. \throws Error (over_budget) when it would
  /// exceed the budget; (a code equal to std::errc::not_enough_memory) when the device has no such
  /// block; (invalid_argument) when there is no such device.
  [[nodiscard]] DeviceSlab allocate_device(DeviceId device, Bytes bytes) {
    auto const cuda = ordinal(device);
    auto& used = used_[device.index()];
    auto const budget = properties_[device.index()].memory_bytes;
    if (auto const before = used.fetch_add(bytes); before + bytes > budget) {
      used.fetch_sub(bytes);
      throw Error(Errc::over_budget,
                  "device " + std::to_string(device.value()) + ": " + format_bytes(bytes) +
                      " wanted, " + format_bytes(budget - std::min(before, budget)) +
                      " left of a budget of " + format_bytes(budget));
    }
    try {
      return {DeviceMemory(cuda, bytes), &used};
    } catch (...) {
      used.fetch_sub(bytes);
      throw;
    }
  }

  /// A slab of \p bytes of pinned host memory, zeroed. \throws Error as \ref PinnedMemory.
  [[nodiscard]] HostSlab allocate_host(Bytes bytes) {
    if (auto const part = take_pinned(bytes); part.size() == bytes) {
      std::ranges::fill(part, std::byte{});
      return HostSlab(part);
    }
    CurrentDevice const current(options_.devices.front());  // pinning takes a context
    return HostSlab(PinnedMemory(bytes));
  }

  /// Stops the backend: opens its fences. Nothing more is enqueued; what is enqueued still runs,
  /// and is not waited for, as destructors of streams do.
  void abort() noexcept { status_->abort(); }

 private:
  static constexpr int oldest_capability = 80;

  [[nodiscard]] Fence fence(bool opened_by_abort) const {
    CurrentDevice const current(options_.devices.front());  // as pinning does
    return {status_, opened_by_abort};
  }

  void require_on(::cudaStream_t borrowed, DeviceId device) const {
    int found = 0;
    check(::cudaStreamGetDevice(borrowed, &found), "cudaStreamGetDevice");
    if (auto const wanted = ordinal(device).value(); found != wanted) {
      throw Error(Errc::invalid_argument,
                  "the stream that was handed in for device " + std::to_string(device.value()) +
                      " of the backend, CUDA's device " + std::to_string(wanted) +
                      ", is one of CUDA's device " + std::to_string(found));
    }
  }

  void open(DeviceId device) {
    auto properties = cu::device_properties(device);
    auto const named = "device " + std::to_string(device.value()) + " (" + properties.name + ")";
    if (auto const capability = compute_capability(device); capability < oldest_capability) {
      throw Error(Errc::unsupported,
                  named + " has compute capability " + std::to_string(capability / 10) + '.' +
                      std::to_string(capability % 10) + "; roundpipe needs 8.0 or later");
    }
    auto const free = properties.memory_bytes;
    auto const usable = free - std::min(free, options_.device_reserve_bytes);
    if (options_.device_memory_bytes > usable) {
      throw Error(Errc::over_budget,
                  named + ": the budget of " + format_bytes(options_.device_memory_bytes) +
                      " is above the " + format_bytes(usable) + " that can be had (" +
                      format_bytes(free) + " free, " + format_bytes(options_.device_reserve_bytes) +
                      " reserved for the context)");
    }
    if (options_.measures_links) {
      auto const link = measure_link(device);
      properties.upload_bytes_per_second = link.upload_bytes_per_second;
      properties.download_bytes_per_second = link.download_bytes_per_second;
    }
    properties.memory_bytes =
        options_.device_memory_bytes == 0 ? usable : options_.device_memory_bytes;
    properties_.push_back(std::move(properties));
  }

  void check_device(DeviceId device) const {
    if (!device.valid() || device.index() >= device_count()) {
      throw Error(Errc::invalid_argument,
                  "there is no device " + std::to_string(device.value()) + "; the backend has " +
                      std::to_string(device_count()));
    }
  }

  [[nodiscard]] bool waits_on_device(DeviceId device) const {
    // The streams of two workers may share a hardware queue, where one that waits for what the host
    // does later holds up the other, whose work the host may be waiting for.
    return options_.waits_on_device && std::ranges::count(options_.devices, device) == 1 &&
           detail::StreamMemoryOps::instance().supported(device);
  }

  [[nodiscard]] static int priority(DeviceId device, LaneKind kind) {
    CurrentDevice const current(device);
    auto const range = cu::Stream::priority_range();
    switch (kind) {
      case LaneKind::activation_up:
      case LaneKind::activation_down:
        return range.highest;
      case LaneKind::compute:
        return (range.highest + range.lowest) / 2;
      default:
        return range.lowest;
    }
  }

  /// \p bytes of the caller's memory, or none.
  [[nodiscard]] HostBytes take_pinned(Bytes bytes) {
    std::lock_guard const lock(mutex_);
    for (auto& rest : options_.pinned) {
      if (bytes > 0 && rest.size() >= bytes) {
        auto const part = rest.first(bytes);
        rest = rest.subspan(std::min(align_up(bytes), rest.size()));
        return part;
      }
    }
    return {};
  }

  Options options_;
  std::shared_ptr<detail::CudaStatus> status_;
  std::vector<DeviceProperties> properties_;
  std::vector<std::atomic<Bytes>> used_;  // by device
  std::mutex mutex_;
};

static_assert(Backend<CudaBackend>);

}  // namespace roundpipe::cu
