// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A group whose large messages go from GPU to GPU, by NCCL.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/exchange_seconds.hpp>
#include <roundpipe/nccl/communicator.hpp>
#include <roundpipe/nccl/faster_from.hpp>
#include <roundpipe/nccl/gpu_staging.hpp>
#include <roundpipe/nccl/staged_exchange.hpp>
#include <roundpipe/nccl/wired_group.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <nccl.h>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace roundpipe {

/// How an \ref NcclGroup works; all but \c device are the same on all ranks.
struct NcclOptions {
  /// Of this rank, by CUDA's number; no other rank has the same GPU.
  DeviceId device{0};
  /// Memory of that GPU through which messages go, beside the budget of what trains there. NCCL
  /// itself takes some more for its connections.
  Bytes staging_bytes = 64_MiB;
  /// The bytes from which a message goes by NCCL. None: from where that is faster, which the ranks
  /// measure when the group is made.
  std::optional<std::size_t> smallest_bytes{};
  /// Blocks of threads of a kernel of NCCL: multiprocessors that do not compute meanwhile.
  int most_blocks = 4;
};

namespace nccl {

/// The wire of a \ref WiredGroup: GPUs, and NCCL between them.
class GpuWire {
 public:
  GpuWire(NcclOptions const& options, std::size_t ranks)
      : device_(options.device), staging_(options.device, ranks, options.staging_bytes) {}

  /// An operation of all ranks.
  void connect(::ncclUniqueId const& id, std::size_t ranks, std::size_t rank, int most_blocks) {
    communicator_.emplace(id, ranks, rank, most_blocks);
  }

  template <class Stop>
  void exchange(std::span<Transfer const> transfers, Stop&& stop) {
    cu::CurrentDevice const current(device_);
    Connected staging{staging_, communicator_->get()};
    run_staged(staging, transfers, staging_.piece_bytes(), [&] {
      stop();
      communicator_->check_health();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    });
  }

  void abort() noexcept {
    cu::CurrentDevice const current(device_, std::nothrow);
    if (communicator_) {
      communicator_->abort();
    }
    staging_.drain();
  }

 private:
  /// The staging with the communicator of its steps.
  struct Connected {
    GpuStaging& staging;
    ::ncclComm_t communicator;

    [[nodiscard]] std::size_t slot_count() const noexcept { return staging.slot_count(); }
    void start(std::size_t slot, std::span<Transfer const> pieces) {
      staging.start(communicator, slot, pieces);
    }
    [[nodiscard]] bool is_done(std::size_t slot) const { return staging.is_done(slot); }
    void finish(std::size_t slot, std::span<Transfer const> pieces) {
      staging.finish(slot, pieces);
    }
  };

  DeviceId device_;
  GpuStaging staging_;
  std::optional<Communicator> communicator_;  // destroyed before the memory that it uses
};

}  // namespace nccl

/// \brief The ranks of another group, such as \ref MpiGroup, whose large messages of exchanges go
/// through GPUs: up to the rank's GPU, by NCCL to the other's, and down, piece by piece, so that
/// the three overlap.
///
/// Bytes are moved and nothing is computed, so results have the bits of any other group. The thread
/// that calls an exchange drives it. Memory that is not pinned is copied once more, on the host.
/// All else goes through the other group, and so does the end: who waits for NCCL looks at it, and
/// what NCCL reports ends the other group.
///
/// Construction and destruction are operations of all ranks, on the channel \c control. A group
/// that is destroyed while an exception unwinds the stack aborts.
class NcclGroup {
 public:
  /// \param group The other group, which must outlive this one. While this one lives, nobody else
  ///        uses it.
  /// \throws Error (device_fault) for what NCCL says, (over_budget) for staging that is too small
  /// for
  ///         the ranks, (invalid_argument) where ranks have other options; as the group and CUDA
  ///         do. A rank that throws ends the group of all.
  explicit NcclGroup(AnyProcessGroup group, NcclOptions options = {})
      : other_(std::move(group)), options_(options) {
    if (other_.size() == 1) {
      return;
    }
    try {
      begin();
    } catch (...) {
      if (wire_) {
        wire_->abort();
      }
      other_.abort(current_error("").message());
      throw;
    }
  }

  NcclGroup(NcclGroup const&) = delete;
  NcclGroup& operator=(NcclGroup const&) = delete;

  ~NcclGroup() {
    if (std::uncaught_exceptions() > exceptions_) {
      other_.abort("an exception has left the scope of its group");
    }
    if (wire_) {
      try {
        other_.barrier(GroupChannel::control);
      } catch (...) {
        wire_->abort();
      }
    }
  }

  [[nodiscard]] std::size_t rank() const { return other_.rank(); }
  [[nodiscard]] std::size_t size() const { return other_.size(); }

  void gather(GroupChannel channel, ConstHostBytes mine, HostBytes all) {
    other_.gather(channel, mine, all);
  }
  void exchange(GroupChannel channel,
                std::span<ConstHostBytes const> mine,
                std::span<HostBytes const> theirs) {
    if (wired_) {
      wired_->exchange(channel, mine, theirs);
    } else {
      other_.exchange(channel, mine, theirs);
    }
  }
  void broadcast(GroupChannel channel, std::size_t root, HostBytes bytes) {
    other_.broadcast(channel, root, bytes);
  }
  void barrier(GroupChannel channel) { other_.barrier(channel); }
  void abort(std::string const& reason) { other_.abort(reason); }
  void rethrow() const { other_.rethrow(); }

  /// The bytes from which a message goes by NCCL; the largest number where none does.
  [[nodiscard]] std::size_t smallest_bytes() const noexcept {
    return wired_ ? wired_->smallest() : std::numeric_limits<std::size_t>::max();
  }

 private:
  void begin() {
    cu::CurrentDevice const current(options_.device);
    auto const ranks = other_.size();
    wire_.emplace(options_, ranks);
    agree();
    ::ncclUniqueId id{};
    if (other_.rank() == 0) {
      id = nccl::unique_id();
    }
    other_.broadcast(GroupChannel::control, 0, std::as_writable_bytes(std::span(&id, 1)));
    wire_->connect(id, ranks, other_.rank(), options_.most_blocks);
    wired_.emplace(other_, *wire_, options_.smallest_bytes.value_or(0));
    connect_pairs();
    if (!options_.smallest_bytes) {
      wired_->set_smallest(find_smallest());
    }
  }

  /// \throws Error (invalid_argument) unless all ranks have the same options. Each has its memory
  ///         when this returns.
  void agree() {
    using Numbers = std::array<std::uint64_t, 4>;
    Numbers const mine{options_.staging_bytes,
                       options_.smallest_bytes.has_value() ? 1U : 0U,
                       options_.smallest_bytes.value_or(0),
                       static_cast<std::uint64_t>(options_.most_blocks)};
    std::vector<Numbers> all(other_.size());
    other_.gather(GroupChannel::control,
                  std::as_bytes(std::span(mine)),
                  std::as_writable_bytes(std::span(all)));
    for (std::size_t r = 0; r < all.size(); ++r) {
      if (all[r] != all[0]) {
        throw Error(Errc::invalid_argument,
                    "rank " + std::to_string(r) + " has other NcclOptions than rank 0");
      }
    }
  }

  /// NCCL connects two ranks when they exchange first, which takes a while: all do it now.
  void connect_pairs() {
    auto const smallest = wired_->smallest();
    wired_->set_smallest(0);
    std::byte const mine{};
    std::vector<std::byte> theirs(other_.size() - 1);
    (void)exchange_seconds(*wired_, GroupChannel::control, {&mine, 1}, theirs, 1);
    wired_->set_smallest(smallest);
  }

  /// Measures exchanges of all ranks on both ways, with messages of up to 16 MiB and 64 MiB in all.
  [[nodiscard]] std::size_t find_smallest() {
    constexpr std::size_t tries = 3;
    auto const others = other_.size() - 1;
    auto const most = std::min<std::size_t>(16_MiB, 64_MiB / others);
    cu::PinnedMemory const memory((1 + others) * most);
    std::vector<nccl::ExchangeTimes> times;
    for (std::size_t bytes = 64_KiB; bytes <= most; bytes *= 4) {
      auto const mine = memory.bytes().first(bytes);
      auto const theirs = memory.bytes().subspan(most, others * bytes);
      auto const channel = GroupChannel::control;
      times.push_back({bytes,
                       exchange_seconds(other_, channel, mine, theirs, tries),
                       exchange_seconds(*wired_, channel, mine, theirs, tries)});
    }
    return nccl::faster_from(times);
  }

  AnyProcessGroup other_;
  NcclOptions options_;
  int exceptions_ = std::uncaught_exceptions();
  std::optional<nccl::GpuWire> wire_;  // none where there is one rank
  std::optional<nccl::WiredGroup<nccl::GpuWire>> wired_;
};

static_assert(ProcessGroup<NcclGroup>);

}  // namespace roundpipe
