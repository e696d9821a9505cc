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
#include <roundpipe/cuda/cuda_options.hpp>
#include <roundpipe/cuda/cuda_resources.hpp>
#include <roundpipe/cuda/cuda_slab.hpp>
#include <roundpipe/cuda/cuda_status.hpp>
#include <roundpipe/cuda/cuda_stream.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/known_speeds.hpp>
#include <roundpipe/cuda/device/memory_limits.hpp>
#include <roundpipe/cuda/device/other_processes.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/cuda/device/shared_speed.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/device/stream_memory_ops.hpp>
#include <roundpipe/cuda/lent_memory.hpp>
#include <roundpipe/cuda/peer_access.hpp>
#include <roundpipe/system/resident_set.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::cu {

/// \brief CUDA devices as workers, numbered from 0; models Backend.
///
/// Streams have priorities: activations before compute before parameters and gradients. Memory
/// comes from plain allocations. When enqueued work fails, CUDA breaks the device's context for
/// good: whatever is asked of the device later throws the same error.
///
/// After \ref abort() fences let all waiters pass, streams enqueue nothing more, kernels and copies
/// that were enqueued still run, and waits of the host throw Errc::aborted.
///
/// Threads may call all members at once; each keeps its current device. The process makes contexts
/// on the named devices alone. Destroy what a backend makes before the backend, on any thread.
class CudaBackend {
 public:
  /// How long a model's layers run to be measured, once clocks have settled. That layers run at all
  /// before step 1 loads their kernels. To load a kernel, at its first launch, the driver may wait
  /// for the whole device, and so also for streams that wait for what the host will do only later.
  static constexpr double warm_up_seconds = 2;

  /// The queue of a device holds about a thousand launches, and the backward of a layer of Qwen3
  /// takes some 55.
  static constexpr std::size_t compute_actions_ahead = 16;
  /// What layers and their libraries load when they first run. Measured on H100 and H200: 20 MiB.
  static constexpr Bytes unloaded_code_bytes = 32_MiB;
  /// Page tables have 8 bytes for each page of 4 KiB, and an entry for each 512 of these. Measured
  /// on an H200: 73 MB with 35 GB of pinned memory, 145 MB with 70 GB.
  static constexpr double page_table_share = 1.0 / 511;

  using Options = CudaBackendOptions;
  using Stream = CudaStream;
  using Event = CudaEvent;
  using Fence = CudaFence;
  using DeviceSlab = CudaDeviceSlab;
  using HostSlab = CudaHostSlab;

  /// \throws Error (no such device) as \ref cu::device_count(); (invalid_argument) for a device
  ///         that is not there; (unsupported) for one below compute capability 8.0; (over_budget)
  ///         for a budget above what a device has free, less \ref
  ///         CudaBackendOptions::device_reserve_bytes. The message names what was wanted and what
  ///         there is.
  explicit CudaBackend(Options options = {})
      : options_(std::move(options)),
        status_(std::make_shared<detail::CudaStatus>()),
        lent_(options_.pinned) {
    if (options_.resources == nullptr) {
      options_.resources = std::make_shared<CudaResources>();
    }
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
      (void)other_processes_bytes(device);
      open(device);
    }
    auto* const speeds = options_.measures_links ? &resources().get<KnownSpeeds>() : nullptr;
    if (speeds != nullptr) {
      set_shared_speed(properties_, speeds->shared(options_.devices));
    }
    set_peers(properties_, options_, speeds);
    used_ = std::vector<std::atomic<Bytes>>(device_count());
  }
  CudaBackend(CudaBackend const&) = delete;
  CudaBackend& operator=(CudaBackend const&) = delete;

  [[nodiscard]] std::size_t device_count() const noexcept { return properties_.size(); }

  /// CUDA's own number of \p device. \throws Error (invalid_argument) when there is no such device.
  [[nodiscard]] DeviceId ordinal(DeviceId device) const {
    check_device(device);
    return options_.devices[device.index()];
  }

  /// What operations on the backend's streams keep between calls. Valid while the backend lives.
  [[nodiscard]] CudaResources& resources() const noexcept { return *options_.resources; }

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
            "devices have no stream for a lane of the host");
    auto const borrowed = options_.stream ? options_.stream(device, kind) : nullptr;
    if (borrowed != nullptr) {
      require_on(borrowed, device);
    }
    return {status_,
            resources(),
            cuda,
            detail::stream_priority(cuda, kind),
            borrowed,
            waits_on_device(cuda)};
  }

  /// A new event, not recorded. \throws Error (invalid_argument) when there is no such device.
  [[nodiscard]] Event make_event(DeviceId device) const { return {status_, ordinal(device)}; }

  /// A new fence, at 0.
  [[nodiscard]] Fence make_fence() const { return {status_, options_.devices.front(), true}; }

  /// A new fence, at 0, that \ref abort leaves as it is; see \ref HasHeldFence.
  [[nodiscard]] Fence make_held_fence() const { return {status_, options_.devices.front(), false}; }

  /// A slab of \p bytes of \p device, content undefined. \throws Error (over_budget) when it would
  /// exceed the budget; (a code equal to std::errc::not_enough_memory) when the device has no such
  /// block; (invalid_argument) when there is no such device.
  [[nodiscard]] DeviceSlab allocate_device(DeviceId device, Bytes bytes) {
    auto const cuda = ordinal(device);
    auto const budget = properties_[device.index()].memory_bytes;
    detail::CountedBytes counted(used_[device.index()], bytes);
    if (counted.before() + bytes > budget) {
      throw Error(Errc::over_budget,
                  "device " + std::to_string(device.value()) + ": " + format_bytes(bytes) +
                      " wanted, " + format_bytes(budget - std::min(counted.before(), budget)) +
                      " left of a budget of " + format_bytes(budget));
    }
    return {DeviceMemory(cuda, bytes), std::move(counted)};
  }

  /// A slab of \p bytes of pinned host memory, zeroed. \throws Error as \ref PinnedMemory.
  [[nodiscard]] HostSlab allocate_host(Bytes bytes) {
    if (auto const part = lent_.take(bytes); part.size() == bytes) {
      std::ranges::fill(part, std::byte{});
      return HostSlab(part);
    }
    CurrentDevice const current(options_.devices.front());  // pinning needs a context
    detail::CountedBytes counted(pinned_, bytes);
    return {PinnedMemory(bytes), std::move(counted)};
  }

  /// What the process holds of \p device besides the backend's slabs, by the driver's count: its
  /// context, modules, libraries, and allocations of its own; and 16 MiB for the streams and events
  /// of a pipeline, and for slabs, which take whole blocks of 2 MiB. Memory that other processes
  /// take after the backend is made counts, too. \throws Error (invalid_argument) when there is no
  /// such device.
  [[nodiscard]] Bytes overhead_bytes(DeviceId device) const {
    auto const cuda = ordinal(device);
    auto const held = held_bytes(cuda);
    Bytes slabs = 0;
    for (std::size_t d = 0; d < device_count(); ++d) {
      slabs += options_.devices[d] == cuda ? used_[d].load() : 0;
    }
    return held - std::min(held, slabs) + 16_MiB;
  }

  /// Lets operations take no more memory for themselves than the process may hold: \p most bytes of
  /// each device, for each worker on it; 0: all that there is. Backends that share resources share
  /// the limits.
  void limit_memory(Bytes most) {
    for (auto const device : options_.devices) {
      auto const workers = static_cast<Bytes>(std::ranges::count(options_.devices, device));
      resources().get<MemoryLimits>().set(device, workers * most);
    }
  }

  /// What the process holds of the host's memory besides the backend's slabs and the memory that
  /// the caller has pinned for it: the program, its libraries, its data.
  [[nodiscard]] Bytes host_overhead_bytes() const {
    auto const resident = resident_set_bytes();
    return resident - std::min(resident, pinned_.load() + lent_.bytes());
  }

  /// Stops the backend, see above; does not wait for what is enqueued.
  void abort() noexcept { status_->abort(); }
  /// Undoes that, when no stream is left. \throws Error where enqueued work has broken a device.
  void resume() {
    std::ranges::for_each(options_.devices, &memory_info);
    status_->resume();
  }

 private:
  static constexpr int oldest_capability = 80;

  void require_on(::cudaStream_t borrowed, DeviceId device) const {
    CurrentDevice const current(ordinal(device));
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
      auto const link = resources().get<KnownSpeeds>().link(device);
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
    // Two workers' streams may share a hardware queue. A stream there that waits for the host would
    // hold up the other worker's, for which the host may be waiting.
    return options_.waits_on_device && std::ranges::count(options_.devices, device) == 1 &&
           detail::StreamMemoryOps::instance().supported(device);
  }

  Options options_;
  std::shared_ptr<detail::CudaStatus> status_;
  detail::LentMemory lent_;
  std::vector<DeviceProperties> properties_;
  std::vector<std::atomic<Bytes>> used_;  // by device
  std::atomic<Bytes> pinned_{0};          // in slabs
};

static_assert(Backend<CudaBackend>);

}  // namespace roundpipe::cu
