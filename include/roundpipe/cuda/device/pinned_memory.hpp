// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Owned host memory that devices copy from and to at full speed.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace roundpipe::cu {

/// Zeroed host memory, pinned for all devices. It takes huge pages where the system gives them,
/// spreads them over all NUMA nodes, touches them with many threads, and only then registers them,
/// in parts of at most \ref largest_registration (the driver is known to refuse a single huge one).
///
/// The driver pins it through a context of the device that is current at its construction. The
/// destructor may run on any thread, once no copy is under way. Movable; a moved-from one is empty.
class PinnedMemory {
 public:
  static constexpr Bytes largest_registration = Bytes{64} << 30;

  PinnedMemory() noexcept = default;
  /// \throws Error (over_budget) when the system has no block of that size; (a code equal to
  ///         std::errc::not_enough_memory) when the driver cannot pin it; as \ref start_thread
  ///         does.
  explicit PinnedMemory(Bytes bytes) : device_(current_device()) {
    if (bytes == 0) {
      return;
    }
    auto const mapped = align_up(bytes, huge_page);
    // One huge page more, so that the block can begin at one.
    auto* const memory = ::mmap(nullptr,
                                mapped + huge_page,
                                PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                                -1,
                                0);
    if (memory == MAP_FAILED) {
      throw Error(Errc::over_budget, "the host has no " + format_bytes(bytes) + " of memory left");
    }
    mapping_ = {static_cast<std::byte*>(memory), mapped + huge_page};
    auto const address = reinterpret_cast<std::uintptr_t>(memory);
    block_ = mapping_.subspan(align_up(address, huge_page) - address, mapped);
    bytes_ = block_.first(bytes);
    try {
      (void)::madvise(block_.data(), block_.size(), MADV_HUGEPAGE);
      interleave();
      touch();
      pin();
    } catch (...) {
      release();
      throw;
    }
  }
  PinnedMemory(PinnedMemory&& other) noexcept { swap(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept {
    PinnedMemory taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~PinnedMemory() { release(); }

  /// Aligned to 2 MiB; valid while the owner lives.
  [[nodiscard]] HostBytes bytes() const noexcept { return bytes_; }

 private:
  static constexpr Bytes huge_page = Bytes{2} << 20;

  void swap(PinnedMemory& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(mapping_, other.mapping_);
    std::swap(block_, other.block_);
    std::swap(bytes_, other.bytes_);
    std::swap(pinned_, other.pinned_);
  }

  /// Gives pages to the nodes in turn, since every device copies all of them. On a single node the
  /// call changes nothing; where the system refuses it, only speed is lost.
  void interleave() const noexcept {
    constexpr int interleave_mode = 3;  // MPOL_INTERLEAVE
    constexpr auto word_bits = 8 * sizeof(unsigned long);
    unsigned long mask[16] = {};
    auto const nodes = usable_cpus().nodes;
    for (auto const node : nodes) {
      if (node < 16 * word_bits) {
        mask[node / word_bits] |= 1UL << (node % word_bits);
      }
    }
    if (!nodes.empty() && nodes.front() != nodes.back()) {
      (void)::syscall(
          SYS_mbind, block_.data(), block_.size(), interleave_mode, mask, 16 * word_bits + 1, 0U);
    }
  }

  /// Makes the pages exist. Page faults take longer than writing zeros, so threads share them.
  void touch() const {
    constexpr Bytes page = 4096;
    constexpr Bytes smallest_share = Bytes{64} << 20;
    auto const cpus = std::max<std::size_t>(usable_cpus().cpus.size(), 1);
    auto const threads = std::clamp<std::size_t>(block_.size() / smallest_share, 1, cpus);
    WorkerPool(threads).for_each_part(block_.size(), huge_page, [&](Bytes begin, Bytes end) {
      for (Bytes at = begin; at < end; at += page) {
        *static_cast<std::byte volatile*>(block_.data() + at) = std::byte{0};
      }
    });
  }

  void pin() {
    for (Bytes first = 0; first < block_.size(); first += largest_registration) {
      auto const part =
          block_.subspan(first, std::min(largest_registration, block_.size() - first));
      if (auto const status =
              ::cudaHostRegister(part.data(), part.size(), cudaHostRegisterPortable);
          status != ::cudaSuccess) {
        (void)::cudaGetLastError();
        throw Error(make_error_code(status),
                    "cudaHostRegister: the driver could not pin " + format_bytes(part.size()) +
                        " of host memory; is there a limit on locked memory?");
      }
      pinned_ = first + part.size();
    }
  }

  void release() noexcept {
    if (pinned_ > 0) {
      CurrentDevice const current(device_, std::nothrow);
      for (Bytes first = 0; first < pinned_; first += largest_registration) {
        (void)::cudaHostUnregister(block_.data() + first);
      }
    }
    if (!mapping_.empty()) {
      (void)::munmap(mapping_.data(), mapping_.size());
    }
    mapping_ = block_ = bytes_ = {};
    pinned_ = 0;
  }

  DeviceId device_;    // whose context it was pinned through
  HostBytes mapping_;  // what the system gave
  HostBytes block_;    // whole huge pages of it
  HostBytes bytes_;    // what was asked for
  Bytes pinned_ = 0;
};

}  // namespace roundpipe::cu
