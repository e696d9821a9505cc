// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Causal grouped-query attention by cuDNN, where the program is built with it
/// (`ROUNDPIPE_HAS_CUDNN`, which CMake's target roundpipe::cuda sets).

#include <roundpipe/cuda/attention/attention_plan.hpp>

#if defined(ROUNDPIPE_HAS_CUDNN) && ROUNDPIPE_HAS_CUDNN

#  include <roundpipe/concepts/ops.hpp>
#  include <roundpipe/core/bytes.hpp>
#  include <roundpipe/core/dtype.hpp>
#  include <roundpipe/core/error.hpp>
#  include <roundpipe/core/id.hpp>
#  include <roundpipe/core/span.hpp>
#  include <roundpipe/core/tensor.hpp>
#  include <roundpipe/cuda/attention/cudnn_frontend.hpp>
#  include <roundpipe/cuda/attention/cudnn_graph.hpp>
#  include <roundpipe/cuda/device/current_device.hpp>

#  include <cuda/stream_ref>

#  include <algorithm>
#  include <cstdint>
#  include <initializer_list>
#  include <map>
#  include <memory>
#  include <mutex>
#  include <new>
#  include <string>
#  include <unordered_map>
#  include <utility>

namespace roundpipe::cu {

/// \brief cuDNN's handles and plans of attention, for all devices. Any thread may call any member.
///
/// A backend's streams share one: `backend.resources().get<CudnnAttention>()`. For a shape that is
/// new to a device cuDNN plans first, which takes up to a second; later calls only enqueue. They
/// allocate no device memory and never synchronize.
class CudnnAttention {
 public:
  CudnnAttention() = default;
  CudnnAttention(CudnnAttention const&) = delete;
  CudnnAttention& operator=(CudnnAttention const&) = delete;

  /// Enqueues as `cu::attention` does. \returns false, having enqueued nothing, where cuDNN does
  /// not compute this.
  [[nodiscard]] bool forward(::cuda::stream_ref stream,
                             DeviceId device,
                             DeviceBytes scratch,
                             AttentionShape const& shape,
                             AttentionOptions options,
                             DeviceTensor const& out,
                             DeviceTensor const& lse,
                             DeviceTensor const& q,
                             DeviceTensor const& k,
                             DeviceTensor const& v) {
    if (!suits(shape, {&out, &lse, &q, &k, &v})) {
      return false;
    }
    auto& on = devices_.at(device);
    std::lock_guard const lock(on.mutex);
    auto const* const plan = find(on,
                                  {false, false, shape, {shape.rows, shape.kv_heads}},
                                  attention_scratch_bytes(shape, options));
    if (plan == nullptr) {
      return false;
    }
    run(on,
        *plan,
        stream,
        scratch,
        {{detail::q_id, q.device_pointer()},
         {detail::k_id, k.device_pointer()},
         {detail::v_id, v.device_pointer()},
         {detail::out_id, out.device_pointer()},
         {detail::lse_id, lse.device_pointer()}});
    return true;
  }

  /// Likewise as `cu::attention_backward`, slice by slice.
  [[nodiscard]] bool backward(::cuda::stream_ref stream,
                              DeviceId device,
                              DeviceBytes scratch,
                              AttentionShape const& shape,
                              AttentionOptions options,
                              DeviceTensor const& dq,
                              DeviceTensor const& dk,
                              DeviceTensor const& dv,
                              DeviceTensor const& dout,
                              DeviceTensor const& q,
                              DeviceTensor const& k,
                              DeviceTensor const& v,
                              DeviceTensor const& out,
                              DeviceTensor const& lse) {
    auto const slice = detail::attention_slice(shape, options);
    if (slice.rows == 0 || !suits(shape, {&dq, &dk, &dv, &dout, &q, &k, &v, &out, &lse})) {
      return false;
    }
    auto const group = shape.heads / shape.kv_heads;
    auto const query_step = shape.head_dim * static_cast<std::int64_t>(size_of(shape.dtype));
    auto& on = devices_.at(device);
    std::lock_guard const lock(on.mutex);
    // Of all slices before the first is enqueued.
    auto const plan_of = [&](std::int64_t rows, std::int64_t kv_heads) {
      return find(on,
                  {true, options.deterministic, shape, {rows, kv_heads}},
                  detail::cudnn_scratch_bytes(shape, options));
    };
    auto const last = [](std::int64_t all, std::int64_t part) { return (all - 1) % part + 1; };
    if (plan_of(slice.rows, slice.kv_heads) == nullptr ||
        plan_of(last(shape.rows, slice.rows), last(shape.kv_heads, slice.kv_heads)) == nullptr) {
      return false;
    }
    for (std::int64_t row = 0; row < shape.rows; row += slice.rows) {
      for (std::int64_t head = 0; head < shape.kv_heads; head += slice.kv_heads) {
        auto const rows = std::min(slice.rows, shape.rows - row);
        auto const kv_heads = std::min(slice.kv_heads, shape.kv_heads - head);
        auto const key_offset = (row * shape.length * shape.kv_heads + head) * query_step;
        auto const query_offset = (row * shape.length * shape.heads + head * group) * query_step;
        auto const lse_offset = (row * shape.heads + head * group) * shape.length *
                                static_cast<std::int64_t>(sizeof(float));
        run(on,
            *plan_of(rows, kv_heads),
            stream,
            scratch,
            {{detail::q_id, q.device_pointer() + query_offset},
             {detail::k_id, k.device_pointer() + key_offset},
             {detail::v_id, v.device_pointer() + key_offset},
             {detail::out_id, out.device_pointer() + query_offset},
             {detail::lse_id, lse.device_pointer() + lse_offset},
             {detail::dout_id, dout.device_pointer() + query_offset},
             {detail::dq_id, dq.device_pointer() + query_offset},
             {detail::dk_id, dk.device_pointer() + key_offset},
             {detail::dv_id, dv.device_pointer() + key_offset}});
      }
    }
    return true;
  }

  /// What cuDNN's own plan of one slice of a backward takes, to compare with the bound behind
  /// \ref attention_scratch_bytes; 0 where cuDNN has no plan.
  [[nodiscard]] Bytes backward_workspace_bytes(DeviceId device,
                                               AttentionShape const& shape,
                                               AttentionOptions options) {
    auto const slice = detail::attention_slice(shape, options);
    if (slice.rows == 0 || !suits(shape, {})) {
      return 0;
    }
    auto& on = devices_.at(device);
    std::lock_guard const lock(on.mutex);
    auto const* const plan = find(on,
                                  {true, options.deterministic, shape, slice},
                                  detail::cudnn_scratch_bytes(shape, options));
    return plan == nullptr ? 0 : plan->workspace_bytes;
  }

 private:
  using Key = detail::CudnnAttentionKey;
  struct Plan {
    ::cudnn_frontend::graph::Graph graph;
    Bytes workspace_bytes = 0;
  };
  /// A handle is bound to one stream at a time, hence the lock around each use.
  struct OnDevice {
    OnDevice() = default;
    OnDevice(OnDevice const&) = delete;
    OnDevice& operator=(OnDevice const&) = delete;
    /// Where the driver has shut down, at the program's end, the system frees plans and handle.
    ~OnDevice() {
      if (handle == nullptr) {
        return;
      }
      CurrentDevice const current(device, std::nothrow);
      if (has_context(device)) {
        plans.clear();
        (void)::cudnnDestroy(handle);
      }
      for (auto& plan : plans) {
        (void)plan.second.release();
      }
    }

    DeviceId device;
    std::mutex mutex;
    ::cudnnHandle_t handle = nullptr;
    std::map<Key, std::unique_ptr<Plan>> plans;  ///< Null: cuDNN does not compute it.
  };
  class Devices {
   public:
    OnDevice& at(DeviceId device) {
      std::lock_guard const lock(mutex_);
      auto& on = table_[device];
      on.device = device;
      return on;
    }

   private:
    std::mutex mutex_;
    std::unordered_map<DeviceId, OnDevice> table_;
  };

  static void check(::cudnnStatus_t status, char const* what) {
    if (status != ::CUDNN_STATUS_SUCCESS) {
      throw Error(Errc::device_fault, std::string(what) + ": " + ::cudnnGetErrorString(status));
    }
  }

  /// cuDNN reads and writes words of 16 bytes.
  [[nodiscard]] static bool suits(AttentionShape const& s,
                                  std::initializer_list<DeviceTensor const*> tensors) {
    return (s.dtype == DType::bf16 || s.dtype == DType::f16) && s.head_dim % 8 == 0 &&
           std::all_of(tensors.begin(), tensors.end(), [](DeviceTensor const* t) {
             return reinterpret_cast<std::uintptr_t>(t->device_pointer()) % 16 == 0;
           });
  }

  /// Null where cuDNN does not compute it, or not within \p most bytes.
  [[nodiscard]] static Plan const* find(OnDevice& on, Key const& key, Bytes most) {
    auto place = on.plans.find(key);
    if (place == on.plans.end()) {
      place = on.plans.emplace(key, make(on, key)).first;
    }
    auto const* const plan = place->second.get();
    return plan != nullptr && plan->workspace_bytes <= most ? plan : nullptr;
  }

  [[nodiscard]] static std::unique_ptr<Plan> make(OnDevice& on, Key const& key) {
    namespace fe = ::cudnn_frontend;
    CurrentDevice const current(on.device);
    if (on.handle == nullptr) {
      check(::cudnnCreate(&on.handle), "cudnnCreate");
    }
    auto plan = std::make_unique<Plan>();
    detail::describe_attention(plan->graph, key);
    std::int64_t bytes = 0;
    if (plan->graph.build(on.handle, {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad() ||
        plan->graph.get_workspace_size(bytes).is_bad()) {
      return nullptr;
    }
    plan->workspace_bytes = static_cast<Bytes>(bytes);
    return plan;
  }

  static void run(OnDevice& on,
                  Plan const& plan,
                  ::cuda::stream_ref stream,
                  DeviceBytes scratch,
                  std::unordered_map<std::int64_t, void*> tensors) {
    require(plan.workspace_bytes <= scratch.size(),
            Errc::invalid_argument,
            "attention has less scratch than attention_scratch_bytes()");
    check(::cudnnSetStream(on.handle, stream.get()), "cudnnSetStream");
    auto status = plan.graph.execute(on.handle, tensors, scratch.device_pointer());
    if (status.is_bad()) {
      throw Error(Errc::device_fault, "cuDNN's attention: " + status.get_message());
    }
  }

  Devices devices_;
};

}  // namespace roundpipe::cu

#else

namespace roundpipe::cu {

/// Stands in where the program is built without cuDNN: it computes nothing.
class CudnnAttention {
 public:
  template <class... Arguments>
  [[nodiscard]] bool forward(Arguments const&... /*arguments*/) const noexcept {
    return false;
  }
  template <class... Arguments>
  [[nodiscard]] bool backward(Arguments const&... /*arguments*/) const noexcept {
    return false;
  }
};

}  // namespace roundpipe::cu

#endif
