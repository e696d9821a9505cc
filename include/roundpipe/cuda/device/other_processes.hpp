// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How much of a device's memory other processes hold, as NVML tells, and so this one.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <dlfcn.h>
#include <map>
#include <mutex>

namespace roundpipe::cu {

namespace detail {

/// The part of NVML's interface that is used here, by NVIDIA's NVML API reference. NVML comes with
/// the driver; its header is a package of its own, so programs need neither.
class Nvml {
 public:
  Nvml() noexcept {
    auto* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      return;
    }
    auto const init = reinterpret_cast<int (*)()>(::dlsym(library, "nvmlInit_v2"));
    find_ = reinterpret_cast<Find>(::dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    read_ = reinterpret_cast<Read>(::dlsym(library, "nvmlDeviceGetMemoryInfo_v2"));
    usable_ = init != nullptr && init() == 0 && find_ != nullptr && read_ != nullptr;
  }

  /// What all processes hold of \p device; 0 where NVML does not tell.
  [[nodiscard]] Bytes used_bytes(DeviceId device) const noexcept {
    std::array<char, 32> bus{};
    void* handle = nullptr;
    Memory memory;
    if (!usable_ ||
        ::cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device.value()) !=
            ::cudaSuccess ||
        find_(bus.data(), &handle) != 0 || read_(handle, &memory) != 0) {
      return 0;
    }
    return memory.used;
  }

 private:
  struct Memory {  // nvmlMemory_v2_t
    unsigned version = sizeof(Memory) | 2U << 24;
    unsigned long long total = 0;
    unsigned long long reserved = 0;
    unsigned long long free = 0;
    unsigned long long used = 0;  // without what is reserved
  };
  using Find = int (*)(char const*, void**);
  using Read = int (*)(void*, Memory*);

  Find find_ = nullptr;
  Read read_ = nullptr;
  bool usable_ = false;
};

}  // namespace detail

/// The bytes of \p device that other processes held when this process first asked. Ask before the
/// process makes a context there: afterwards, and where NVML is missing, the answer is 0.
[[nodiscard]] inline Bytes other_processes_bytes(DeviceId device) {
  static std::mutex mutex;
  static detail::Nvml const nvml;
  static std::map<DeviceId, Bytes> known;
  std::lock_guard const lock(mutex);
  if (auto const found = known.find(device); found != known.end()) {
    return found->second;
  }
  return known[device] = has_context(device) ? 0 : nvml.used_bytes(device);
}

/// The bytes of \p device that this process holds: all that the driver counts as used, but for \ref
/// other_processes_bytes. What other processes have taken since then counts, too.
[[nodiscard]] inline Bytes held_bytes(DeviceId device) {
  auto const others = other_processes_bytes(device);  // before there is a context
  auto const memory = memory_info(device);
  auto const used = memory.total_bytes - memory.free_bytes;
  return used - std::min(used, others);
}

}  // namespace roundpipe::cu
