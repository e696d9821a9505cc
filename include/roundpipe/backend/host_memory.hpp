// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Slabs of device and host memory for the host backend; each pool has a hard budget.

#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

class HostBackend;

namespace detail {

struct HostMemoryDeleter {
  void operator()(std::byte* memory) const noexcept {
    ::operator delete(memory, std::align_val_t{tensor_alignment_bytes});
  }
};
using HostMemory = std::unique_ptr<std::byte, HostMemoryDeleter>;

/// The memory of one device, or of the host, under a budget.
///
/// Memory that is returned while work is pending stays allocated until no work is pending, as \c
/// cudaFree waits for the device. Its share of the budget is free at once.
class HostPool {
 public:
  static constexpr Bytes unlimited = std::numeric_limits<Bytes>::max();

  HostPool(std::shared_ptr<HostStatus> status, std::string name, Bytes budget_bytes)
      : status_(std::move(status)), name_(std::move(name)), budget_bytes_(budget_bytes) {}

  /// \p bytes of aligned memory, every byte set to \p first. \throws Error (over_budget).
  HostMemory take(Bytes bytes, std::byte first);

  void give_back(HostMemory memory, Bytes bytes);

 private:
  void reserve(Bytes bytes);
  void release_retired();

  std::shared_ptr<HostStatus> status_;
  std::string name_;
  Bytes budget_bytes_;
  std::mutex mutex_;
  Bytes used_bytes_ = 0;
  std::vector<HostMemory> retired_;
};

/// \brief The owner of one slab; \p Span is the type of its view.
///
/// Movable; a moved-from slab is empty. The destructor returns the memory to the budget; pending
/// copies and kernels may still touch the memory without harm.
template <class Span>
class HostSlab {
 public:
  HostSlab() noexcept = default;
  HostSlab(HostSlab&& other) noexcept
      : pool_(std::move(other.pool_)),
        memory_(std::move(other.memory_)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  HostSlab& operator=(HostSlab&& other) noexcept {
    HostSlab taken(std::move(other));
    pool_.swap(taken.pool_);
    memory_.swap(taken.memory_);
    std::swap(bytes_, taken.bytes_);
    return *this;
  }
  ~HostSlab() {
    if (memory_) {
      pool_->give_back(std::move(memory_), bytes_);
    }
  }

  /// The slab, aligned to \ref tensor_alignment_bytes; valid while the owner lives.
  [[nodiscard]] Span bytes() const noexcept { return {memory_.get(), bytes_}; }

 private:
  friend class roundpipe::HostBackend;

  HostSlab(std::shared_ptr<HostPool> pool, Bytes bytes, std::byte first)
      : pool_(std::move(pool)), memory_(pool_->take(bytes, first)), bytes_(bytes) {}

  std::shared_ptr<HostPool> pool_;
  HostMemory memory_;
  Bytes bytes_ = 0;
};

}  // namespace detail

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_memory.ipp>
#endif
