// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The memory of a GPU through which pieces of host memory go to other ranks' GPUs.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/event.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/hosts/group_checks.hpp>
#include <roundpipe/nccl/communicator.hpp>
#include <roundpipe/nccl/staged_exchange.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <nccl.h>
#include <span>
#include <string>
#include <vector>

namespace roundpipe::nccl {

/// \brief Slots of device memory, for \ref run_staged.
///
/// A slot has room for a piece to and a piece from each other rank. What is sent goes up on one
/// stream, over the wire on a second one, and what is received comes down on a third; events order
/// the three within a slot, and who reuses a slot waits for it first. Host memory that is not
/// pinned takes its way through pinned memory of the same size as the slots. All memory is taken at
/// construction: where two ranks are threads of one process, one that takes pinned memory may wait
/// for the other's kernel, which waits for this rank.
///
/// The device must be current wherever a member is called.
class GpuStaging {
 public:
  static constexpr std::size_t slots = 8;
  static constexpr Bytes smallest_piece = 4096;

  /// Takes at most \p bytes of the current device.
  /// \throws Error (over_budget) when pieces would be smaller than \ref smallest_piece; as
  ///         \ref cu::DeviceMemory and \ref cu::Stream.
  GpuStaging(DeviceId device, std::size_t ranks, Bytes bytes)
      : others_(ranks - 1),
        piece_(align_down(bytes / (2 * slots * others_))),
        memory_(device, 2 * slots * others_ * piece_),
        bounce_(2 * slots * others_ * piece_),
        up_(cu::Stream::priority_range().highest),
        wire_(cu::Stream::priority_range().highest),
        down_(cu::Stream::priority_range().highest),
        up_done_(slots),
        wire_done_(slots),
        down_done_(slots) {
    if (piece_ == 0) {
      throw Error(Errc::over_budget,
                  "staging for " + std::to_string(ranks) + " ranks takes at least " +
                      format_bytes(2 * slots * others_ * smallest_piece) + ", and has " +
                      format_bytes(bytes));
    }
  }

  [[nodiscard]] std::size_t slot_count() const noexcept { return slots; }
  /// The most bytes of a piece; the same on all ranks with the same arguments.
  [[nodiscard]] Bytes piece_bytes() const noexcept { return piece_; }

  /// Enqueues what the pieces take, in three streams. Does not synchronize. The pieces' memory must
  /// live until \ref is_done, or until \ref drain.
  /// \throws Error for what CUDA and NCCL say.
  void start(::ncclComm_t communicator, std::size_t slot, std::span<Transfer const> pieces) {
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      copy_up(slot, k, pieces[k].sent);
    }
    cu::EventRef(up_done_[slot]).record(up_);
    wait(wire_, up_done_[slot]);
    send_and_receive(communicator, slot, pieces);
    cu::EventRef(wire_done_[slot]).record(wire_);
    wait(down_, wire_done_[slot]);
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      copy_down(slot, k, pieces[k].received);
    }
    cu::EventRef(down_done_[slot]).record(down_);
  }

  [[nodiscard]] bool is_done(std::size_t slot) const {
    return cu::EventRef(down_done_[slot]).is_done();
  }

  /// Moves what has come down to memory that is not pinned.
  void finish(std::size_t slot, std::span<Transfer const> pieces) {
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      auto const& to = pieces[k].received;
      if (!to.empty() && !is_pinned(to.data())) {
        detail::copy_bytes(bounce(1, slot, k).first(to.size()), to);
      }
    }
  }

  /// Waits until nothing is under way, whatever it has come to.
  void drain() noexcept {
    for (auto const* const stream : {&up_, &wire_, &down_}) {
      (void)::cudaStreamSynchronize(stream->get());
    }
    (void)::cudaGetLastError();
  }

 private:
  /// Down to whole pieces of \ref smallest_piece.
  [[nodiscard]] static Bytes align_down(Bytes bytes) noexcept {
    return bytes / smallest_piece * smallest_piece;
  }

  /// Where piece \p k lies in \p slot; \p half: 0 for what is sent, 1 for what is received.
  [[nodiscard]] Bytes place(std::size_t half, std::size_t slot, std::size_t k) const noexcept {
    return ((half * slots + slot) * others_ + k) * piece_;
  }
  [[nodiscard]] std::byte* staged(std::size_t half,
                                  std::size_t slot,
                                  std::size_t k) const noexcept {
    return memory_.bytes().device_pointer() + place(half, slot, k);
  }
  [[nodiscard]] HostBytes bounce(std::size_t half, std::size_t slot, std::size_t k) const noexcept {
    return bounce_.bytes().subspan(place(half, slot, k), piece_);
  }

  [[nodiscard]] static bool is_pinned(void const* memory) {
    ::cudaPointerAttributes attributes{};
    cu::check(::cudaPointerGetAttributes(&attributes, memory), "cudaPointerGetAttributes");
    return attributes.type != ::cudaMemoryTypeUnregistered;
  }

  void copy_up(std::size_t slot, std::size_t k, ConstHostBytes from) {
    if (from.empty()) {
      return;
    }
    if (!is_pinned(from.data())) {
      auto const pinned = bounce(0, slot, k).first(from.size());
      detail::copy_bytes(from, pinned);
      from = pinned;
    }
    cu::check(
        ::cudaMemcpyAsync(
            staged(0, slot, k), from.data(), from.size(), ::cudaMemcpyHostToDevice, up_.get()),
        "cudaMemcpyAsync");
  }

  void copy_down(std::size_t slot, std::size_t k, HostBytes to) {
    if (to.empty()) {
      return;
    }
    auto* const target = is_pinned(to.data()) ? to.data() : bounce(1, slot, k).data();
    cu::check(::cudaMemcpyAsync(
                  target, staged(1, slot, k), to.size(), ::cudaMemcpyDeviceToHost, down_.get()),
              "cudaMemcpyAsync");
  }

  void send_and_receive(::ncclComm_t communicator,
                        std::size_t slot,
                        std::span<Transfer const> pieces) {
    check(::ncclGroupStart(), "ncclGroupStart");
    auto result = ::ncclSuccess;
    for (std::size_t k = 0; k < pieces.size(); ++k) {
      auto const peer = static_cast<int>(pieces[k].rank);
      if (result == ::ncclSuccess && !pieces[k].sent.empty()) {
        result = ::ncclSend(staged(0, slot, k),
                            pieces[k].sent.size(),
                            ::ncclUint8,
                            peer,
                            communicator,
                            wire_.get());
      }
      if (result == ::ncclSuccess && !pieces[k].received.empty()) {
        result = ::ncclRecv(staged(1, slot, k),
                            pieces[k].received.size(),
                            ::ncclUint8,
                            peer,
                            communicator,
                            wire_.get());
      }
    }
    auto const end = ::ncclGroupEnd();  // also after a failure, so that the thread is in no group
    check(result, "ncclSend and ncclRecv");
    check(end, "ncclGroupEnd");
  }

  static void wait(cu::Stream const& stream, cu::Event const& event) {
    cu::check(::cudaStreamWaitEvent(stream.get(), event.get()), "cudaStreamWaitEvent");
  }

  std::size_t others_;  // ranks
  Bytes piece_;
  cu::DeviceMemory memory_;
  cu::PinnedMemory bounce_;
  cu::Stream up_;
  cu::Stream wire_;
  cu::Stream down_;
  std::vector<cu::Event> up_done_;  // by slot
  std::vector<cu::Event> wire_done_;
  std::vector<cu::Event> down_done_;
};

}  // namespace roundpipe::nccl
