// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Streams of the CUDA backend.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/cuda_event.hpp>
#include <roundpipe/cuda/cuda_fence.hpp>
#include <roundpipe/cuda/cuda_resources.hpp>
#include <roundpipe/cuda/cuda_status.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/event.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/device/stream_memory_ops.hpp>
#include <roundpipe/cuda/rounding.hpp>
#include <roundpipe/cuda/tensor_sums.hpp>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

namespace roundpipe::cu {

namespace detail {

/// The priority of \p device's stream for \p kind: activations before compute before the rest.
[[nodiscard]] inline int stream_priority(DeviceId device, LaneKind kind) {
  CurrentDevice const current(device);
  auto const range = cu::Stream::priority_range();
  switch (kind) {
    case LaneKind::activation_up:
    case LaneKind::activation_down:
    case LaneKind::peer:
      return range.highest;
    case LaneKind::compute:
      return (range.highest + range.lowest) / 2;
    default:
      return range.lowest;
  }
}

}  // namespace detail

/// \brief A FIFO of work on one device; models BackendStream.
///
/// Streams come from \ref CudaBackend::make_stream(). Every member but \ref synchronize() enqueues
/// and returns; what it names must live until the work has run. One thread at a time. Members leave
/// the thread's current device as it is, all but \ref get() and the conversion, which are for
/// launches and make the stream's device current.
///
/// After the backend's \c abort() a stream enqueues nothing more. The destructor, on any thread,
/// waits for what is enqueued, so that memory may be given back after it.
class CudaStream {
 public:
  CudaStream(CudaStream&& other) noexcept
      : status_(std::move(other.status_)),
        resources_(other.resources_),
        device_(other.device_),
        own_(std::move(other.own_)),
        handle_(std::exchange(other.handle_, nullptr)),
        waits_on_device_(other.waits_on_device_),
        range_(std::exchange(other.range_, no_range)) {}
  CudaStream& operator=(CudaStream&& other) noexcept {
    CudaStream taken(std::move(other));
    std::swap(status_, taken.status_);
    std::swap(resources_, taken.resources_);
    std::swap(device_, taken.device_);
    std::swap(own_, taken.own_);
    std::swap(handle_, taken.handle_);
    std::swap(waits_on_device_, taken.waits_on_device_);
    std::swap(range_, taken.range_);
    return *this;
  }
  ~CudaStream() {
    if (handle_ != nullptr) {
      annotate(nullptr);
      CurrentDevice const current(device_, std::nothrow);
      (void)::cudaStreamSynchronize(handle_);
    }
  }

  /// The device, by CUDA's number of it.
  [[nodiscard]] DeviceId device() const noexcept { return device_; }

  /// What operations keep between calls, for all streams of the backend.
  [[nodiscard]] CudaResources& resources() const noexcept { return *resources_; }

  /// The handle, which stays owned, for launches of kernels and calls of libraries. It makes the
  /// stream's device the calling thread's current one, as these need, and leaves it so.
  [[nodiscard]] ::cudaStream_t get() const {
    make_current(device_);
    return handle_;
  }
  /// The same, as CCCL's kind of parameter.
  operator ::cuda::stream_ref() const { return ::cuda::stream_ref(get()); }

  /// Marks the end of what the stream holds now. The event must be of the stream's device.
  void record(CudaEvent& event) {
    CurrentDevice const current(device_);
    check(::cudaEventRecord(event.get(), handle_), "cudaEventRecord");
  }

  /// Later work waits for the latest record of \p event, which may be of any device.
  void wait(CudaEvent const& event) {
    CurrentDevice const current(device_);
    check(::cudaStreamWaitEvent(handle_, event.get()), "cudaStreamWaitEvent");
  }

  /// Later work waits until \p fence is at least \p value. Where the driver cannot let a stream
  /// wait for host memory, the calling thread waits instead.
  void wait(CudaFence const& fence, std::uint64_t value) {
    if (fence.reached(value)) {
      return;
    }
    if (waits_on_device_) {
      CurrentDevice const current(device_);
      detail::StreamMemoryOps::instance().wait(handle_, fence.flag(), value);
    } else {
      fence.wait(value);
    }
  }

  /// Copies \p from, which is pinned, to the device. \throws Error (invalid_argument) when the
  /// sizes differ.
  void copy(DeviceBytes to, HostSpan<std::byte const> from) {
    require(to.size() == from.size(),
            Errc::invalid_argument,
            "the source and the destination of a copy must have the same size");
    copy(to.device_pointer(), from.data(), to.size(), ::cudaMemcpyHostToDevice);
  }
  /// Copies \p from to pinned host memory. \throws Error (invalid_argument) when the sizes differ.
  void copy(HostBytes to, DeviceSpan<std::byte const> from) {
    require(to.size() == from.size(),
            Errc::invalid_argument,
            "the source and the destination of a copy must have the same size");
    copy(to.data(), from.device_pointer(), to.size(), ::cudaMemcpyDeviceToHost);
  }

  /// Copies \p from to another device, whose memory is open to this one. \throws Error
  /// (invalid_argument) when the sizes differ.
  void copy_to_peer(DeviceBytes to, DeviceSpan<std::byte const> from) {
    require(to.size() == from.size(),
            Errc::invalid_argument,
            "the source and the destination of a copy must have the same size");
    copy(to.device_pointer(), from.device_pointer(), to.size(), ::cudaMemcpyDefault);
  }

  /// Copies the elements of \p from, which lies on the same device.
  /// \throws Error (invalid_argument) when the sizes or the types differ.
  void copy(DeviceTensor const& to, DeviceTensor const& from) {
    require_alike(to, from);
    copy(to.device_pointer(), from.device_pointer(), to.size_bytes(), ::cudaMemcpyDeviceToDevice);
  }

  /// Adds the elements of \p from to those of \p to; sums of 16-bit types are rounded once.
  /// \throws Error (invalid_argument) when the sizes or the types differ, or they are integers.
  void add(DeviceTensor const& to, DeviceTensor const& from) {
    require_alike(to, from);
    require(
        is_floating(to.dtype()), Errc::invalid_argument, "a stream adds floating tensors alone");
    if (!status_->aborted()) {
      CurrentDevice const current(device_);
      resources_->get<detail::SumKernels>().add(handle_, to, from);
    }
  }

  /// Sets every byte of \p to.
  void fill(DeviceBytes to, std::byte value) {
    if (!to.empty() && !status_->aborted()) {
      CurrentDevice const current(device_);
      check(::cudaMemsetAsync(to.device_pointer(), std::to_integer<int>(value), to.size(), handle_),
            "cudaMemsetAsync");
    }
  }

  /// Rounds every number of \p from, to nearest, ties to even.
  /// \throws Error (invalid_argument) when the sizes differ.
  void round(DeviceSpan<BFloat16> to, DeviceSpan<float const> from) {
    round(&detail::RoundingKernels::to_bf16, to, from);
  }
  /// Likewise; magnitudes from 65520 on become infinite.
  void round(DeviceSpan<Float16> to, DeviceSpan<float const> from) {
    round(&detail::RoundingKernels::to_f16, to, from);
  }

  /// Names the work enqueued from now on as an NVTX range, until the next name; null ends the last.
  void annotate(char const* label) noexcept {
    if (range_ != no_range) {
      ::nvtxRangeEnd(range_);
      range_ = no_range;
    }
    if (label != nullptr) {
      range_ = ::nvtxRangeStartA(label);
    }
  }

  /// Blocks until all that was enqueued has run. \throws Error with the first failure of enqueued
  /// work, or (aborted) after an abort.
  void synchronize() const {
    CurrentDevice const current(device_);
    check(::cudaStreamSynchronize(handle_), "cudaStreamSynchronize");
    status_->throw_if_aborted();
  }

 private:
  friend class CudaBackend;

  static constexpr ::nvtxRangeId_t no_range = 0;

  /// Owns a new stream, or borrows \p borrowed, when that is not null.
  CudaStream(std::shared_ptr<detail::CudaStatus> status,
             CudaResources& resources,
             DeviceId device,
             int priority,
             ::cudaStream_t borrowed,
             bool waits_on_device)
      : status_(std::move(status)),
        resources_(&resources),
        device_(device),
        handle_(borrowed),
        waits_on_device_(waits_on_device) {
    if (borrowed == nullptr) {
      CurrentDevice const current(device);
      own_.emplace(priority);
      handle_ = own_->get();
    }
  }

  void copy(void* to, void const* from, Bytes bytes, ::cudaMemcpyKind kind) {
    if (bytes > 0 && !status_->aborted()) {
      CurrentDevice const current(device_);
      check(::cudaMemcpyAsync(to, from, bytes, kind, handle_), "cudaMemcpyAsync");
    }
  }

  template <class Narrow>
  void round(::cudaKernel_t (detail::RoundingKernels::*kernel)() const noexcept,
             DeviceSpan<Narrow> to,
             DeviceSpan<float const> from) {
    require(to.size() == from.size(),
            Errc::invalid_argument,
            "the source and the destination of a rounding must have the same size");
    if (!status_->aborted()) {
      CurrentDevice const current(device_);
      auto const& kernels = resources_->get<detail::RoundingKernels>();
      detail::RoundingKernels::launch(
          (kernels.*kernel)(), handle_, to.device_pointer(), from.device_pointer(), to.size());
    }
  }

  std::shared_ptr<detail::CudaStatus> status_;
  CudaResources* resources_;
  DeviceId device_;
  std::optional<Stream> own_;
  ::cudaStream_t handle_ = nullptr;
  bool waits_on_device_ = false;
  ::nvtxRangeId_t range_ = no_range;
};

static_assert(BackendStream<CudaStream, CudaEvent, CudaFence> && AddsTensors<CudaStream> &&
              CopiesToPeers<CudaStream>);

}  // namespace roundpipe::cu
