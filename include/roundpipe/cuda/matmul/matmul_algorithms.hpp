// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which of cuBLASLt's algorithms computes which product: measured once for each shape and
/// kind of device.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/memory_limits.hpp>
#include <roundpipe/cuda/matmul/blas.hpp>
#include <roundpipe/cuda/matmul/matmul_file.hpp>
#include <roundpipe/cuda/matmul/matmul_plan.hpp>
#include <roundpipe/cuda/matmul/matmul_timing.hpp>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace roundpipe::cu {

/// \brief A choice of algorithms, for all devices. Any thread may call any member.
///
/// A backend's streams share one: `backend.resources().get<MatmulAlgorithms>()`. The first product
/// of a shape asks cuBLASLt for candidates and times them on a stream and in memory of its own, as
/// far as \ref MemoryLimits leave some; where they leave too little even for a small product, it
/// takes cuBLASLt's first proposal. The choice holds for all devices of a kind (name, compute
/// capability, multiprocessors), so that a recomputation on another one gives the same bits.
/// Another backend or process may measure otherwise and choose another algorithm, whose sums round
/// differently. Backends that share their resources share the choice, \ref save and \ref load
/// carry it over to other processes, and without measurements (\ref measure) it depends on
/// cuBLASLt's version alone.
///
/// Only algorithms whose sums have a fixed order are candidates; those that split a sum over
/// blocks do so through a workspace, in fp32.
///
/// Do not use a new shape while a stream of the device waits for the host and the host waits for
/// this call: they deadlock, because the driver loads a kernel at its first launch, and to load one
/// waits for all that the device has begun. Run each layer once with each shape before, as
/// pipelines do, or load all kernels when the process starts (`CUDA_MODULE_LOADING=EAGER`).
class MatmulAlgorithms {
 public:
  /// Takes what memory there is.
  MatmulAlgorithms() = default;
  /// Keeps to the limits of \p resources, a \ref CudaResources, which must outlive it.
  template <class Resources>
    requires requires(Resources& r) {
      { r.template get<MemoryLimits>() } -> std::same_as<MemoryLimits&>;
    }
  explicit MatmulAlgorithms(Resources& resources)
      : limits_(&resources.template get<MemoryLimits>()) {}
  MatmulAlgorithms(MatmulAlgorithms const&) = delete;
  MatmulAlgorithms& operator=(MatmulAlgorithms const&) = delete;

  /// Whether to measure shapes that are new from now on. Default: yes.
  void measure(bool yes) noexcept { measures_ = yes; }
  [[nodiscard]] bool measures() const noexcept { return measures_; }

  /// For shapes that are new from now on, takes only algorithms that need no address to be a
  /// multiple of more than \p bytes. Below 16, kernels store element by element instead of through
  /// bulk copies, whose stores compute-sanitizer's initcheck does not see. Default: 256.
  void limit_alignment(std::uint32_t bytes) noexcept { most_alignment_ = bytes; }

  /// The cuBLASLt handle of \p device. \throws Error as \ref BlasHandles::of.
  [[nodiscard]] ::cublasLtHandle_t handle(DeviceId device) { return handles_.of(device); }

  /// How \p device computes \p problem. A known shape costs one look-up. A new one allocates and
  /// waits for its own measurements, but for no stream of the caller's, unless the driver does so
  /// to load kernels.
  /// \throws Error (unsupported) when cuBLASLt has no algorithm for it.
  [[nodiscard]] std::shared_ptr<MatmulPlan const> find(DeviceId device,
                                                       MatmulProblem const& problem) {
    Key const key{kind_of(device), problem};
    if (auto plan = look_up(key)) [[likely]] {
      return plan;
    }
    std::lock_guard const lock(choosing_);
    if (auto plan = look_up(key)) {  // by another thread, meanwhile
      return plan;
    }
    auto plan = std::make_shared<MatmulPlan const>(choose(device, problem));
    std::unique_lock const change(mutex_);
    return plans_.emplace(key, std::move(plan)).first->second;
  }

  /// The number of choices made.
  [[nodiscard]] std::size_t size() const {
    std::shared_lock const lock(mutex_);
    return plans_.size();
  }

  /// Forgets all choices. Results before and after may differ in their last bits.
  void clear() {
    std::unique_lock const lock(mutex_);
    plans_.clear();
  }

  /// Writes all choices to a text file. \throws Error as \ref write_matmul_file.
  void save(std::filesystem::path const& path) const {
    MatmulFile file;
    {
      std::scoped_lock const lock(choosing_, mutex_);
      file.devices = kinds_;
      for (auto const& [key, plan] : plans_) {
        file.choices.push_back({static_cast<std::size_t>(key.kind), key.problem, plan->algorithm});
      }
    }
    write_matmul_file(path, file);
  }

  /// Takes the choices of a file by \ref save. Call it before the first product: choices already
  /// made stay.
  /// \throws Error as \ref read_matmul_file; (unsupported) when the file is about a device that is
  ///         not there; (invalid_argument) when cuBLASLt does not take an algorithm of it. It then
  ///         takes nothing.
  void load(std::filesystem::path const& path) {
    auto const file = read_matmul_file(path);
    std::vector<DeviceId> devices;  // by the file's number of a kind
    for (auto const& kind : file.devices) {
      devices.push_back(device_of(kind, path));
    }
    std::vector<std::pair<Key, std::shared_ptr<MatmulPlan const>>> found;
    for (auto const& choice : file.choices) {
      found.push_back(checked(choice, devices[choice.device], path));
    }
    std::unique_lock const change(mutex_);
    for (auto& [key, plan] : found) {
      plans_.emplace(key, std::move(plan));
    }
  }

 private:
  struct Key {
    int kind = 0;
    MatmulProblem problem;
    friend bool operator==(Key const&, Key const&) = default;
  };
  struct Hash {
    std::size_t operator()(Key const& key) const noexcept {
      return hash_of(key.problem) * 31 + static_cast<std::size_t>(key.kind);
    }
  };

  [[nodiscard]] std::shared_ptr<MatmulPlan const> look_up(Key const& key) const {
    std::shared_lock const lock(mutex_);
    auto const place = plans_.find(key);
    return place == plans_.end() ? nullptr : place->second;
  }

  /// The kind of \p device, in words: what tells devices apart that may not compute alike.
  [[nodiscard]] static std::string describe(DeviceId device) {
    ::cudaDeviceProp properties{};
    check(::cudaGetDeviceProperties(&properties, device.value()), "cudaGetDeviceProperties");
    return std::to_string(compute_capability(device)) + ' ' +
           std::to_string(properties.multiProcessorCount) + ' ' + properties.name;
  }

  /// The number of \p device's kind.
  [[nodiscard]] int kind_of(DeviceId device) {
    require(device.valid() && device.index() < max_devices,
            Errc::invalid_argument,
            "a device's number is negative or above 63");
    auto& known = kind_of_device_[device.index()];
    if (int const kind = known.load(std::memory_order_acquire); kind != 0) [[likely]] {
      return kind - 1;
    }
    auto const words = describe(device);
    std::lock_guard const lock(choosing_);
    std::size_t kind = 0;
    while (kind < kinds_.size() && kinds_[kind] != words) {
      ++kind;
    }
    if (kind == kinds_.size()) {
      kinds_.push_back(words);
    }
    known.store(static_cast<int>(kind) + 1, std::memory_order_release);
    return static_cast<int>(kind);
  }

  [[nodiscard]] static DeviceId device_of(std::string const& kind,
                                          std::filesystem::path const& path) {
    auto const count = device_count();
    std::string here;
    for (std::size_t i = 0; i < count; ++i) {
      auto const words = describe(DeviceId(i));
      if (words == kind) {
        return DeviceId(i);
      }
      here += (i == 0 ? "'" : ", '") + words + '\'';
    }
    throw Error(Errc::unsupported,
                path.string() + " was made for the device '" + kind + "', and here are " + here +
                    ": measure again");
  }

  [[nodiscard]] MatmulPlan choose(DeviceId device, MatmulProblem const& problem) {
    CurrentDevice const current(device);
    auto plan = unchosen_plan(problem);
    auto const found = detail::propose(handles_.of(device), plan, problem, most_alignment_);
    plan.algorithm = found.front();
    if (measures_ && found.size() > 1) {
      auto const most = limits_ == nullptr ? memory_info(device).free_bytes : limits_->left(device);
      plan.algorithm = detail::fastest(handles_.of(device), problem, found, most);
    }
    return plan;
  }

  /// \p choice of the file at \p path as a plan that \p device runs.
  [[nodiscard]] std::pair<Key, std::shared_ptr<MatmulPlan const>> checked(
      MatmulChoice const& choice, DeviceId device, std::filesystem::path const& path) {
    auto plan = unchosen_plan(choice.problem);
    plan.algorithm = choice.algorithm;
    CurrentDevice const current(device);
    if (!detail::runs(handles_.of(device), plan)) {
      throw Error(Errc::invalid_argument,
                  path.string() + " has an algorithm that cuBLASLt does not take for " +
                      to_string(choice.problem));
    }
    return {Key{kind_of(device), choice.problem}, std::make_shared<MatmulPlan const>(plan)};
  }

  MemoryLimits const* limits_ = nullptr;
  BlasHandles handles_;
  std::atomic<bool> measures_ = true;
  std::atomic<std::uint32_t> most_alignment_ = 256;
  std::array<std::atomic<int>, max_devices> kind_of_device_{};  ///< Plus 1; 0: not known yet.
  mutable std::mutex choosing_;                                 ///< One measurement at a time.
  std::vector<std::string> kinds_;                              ///< Guarded by choosing_.
  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<MatmulPlan const>, Hash> plans_;  ///< By mutex_.
};

}  // namespace roundpipe::cu
