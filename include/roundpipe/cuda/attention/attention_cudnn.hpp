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
#  include <roundpipe/cuda/device/device.hpp>

#  include <cuda/stream_ref>
#  include <cudnn.h>
#  include <cudnn_frontend.h>

#  include <algorithm>
#  include <cmath>
#  include <cstdint>
#  include <cstring>  // cudnn_frontend needs it and does not say so
#  include <initializer_list>
#  include <map>
#  include <memory>
#  include <mutex>
#  include <string>
#  include <tuple>
#  include <unordered_map>
#  include <utility>

namespace roundpipe::cu {

/// \brief The process's plans of cuDNN for attention. Any thread may call any member.
///
/// A shape that is new to a device makes cuDNN plan, which takes up to a second; later calls only
/// enqueue. They allocate no device memory and never synchronize.
class CudnnAttention {
 public:
  static CudnnAttention& instance() {
    static CudnnAttention& attention = *new CudnnAttention;  // see blas_handle(): never destroyed
    return attention;
  }
  CudnnAttention(CudnnAttention const&) = delete;
  CudnnAttention& operator=(CudnnAttention const&) = delete;

  /// Enqueues as `cu::attention` does. \returns false, with nothing enqueued, where cuDNN does not
  /// compute this.
  [[nodiscard]] bool forward(::cuda::stream_ref stream,
                             DeviceId device,
                             DeviceBytes scratch,
                             AttentionShape const& shape,
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
                                  device,
                                  {false, false, shape, {shape.rows, shape.kv_heads}},
                                  attention_scratch_bytes(shape));
    if (plan == nullptr) {
      return false;
    }
    run(on,
        *plan,
        stream,
        scratch,
        {{q_id, q.device_pointer()},
         {k_id, k.device_pointer()},
         {v_id, v.device_pointer()},
         {out_id, out.device_pointer()},
         {lse_id, lse.device_pointer()}});
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
                  device,
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
            {{q_id, q.device_pointer() + query_offset},
             {k_id, k.device_pointer() + key_offset},
             {v_id, v.device_pointer() + key_offset},
             {out_id, out.device_pointer() + query_offset},
             {lse_id, lse.device_pointer() + lse_offset},
             {dout_id, dout.device_pointer() + query_offset},
             {dq_id, dq.device_pointer() + query_offset},
             {dk_id, dk.device_pointer() + key_offset},
             {dv_id, dv.device_pointer() + key_offset}});
      }
    }
    return true;
  }

  /// What cuDNN's own plan of one slice of a backward takes, for comparison with the bound that
  /// \ref attention_scratch_bytes is made of; 0 where it has none.
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
                                  device,
                                  {true, options.deterministic, shape, slice},
                                  detail::cudnn_scratch_bytes(shape, options));
    return plan == nullptr ? 0 : plan->workspace_bytes;
  }

 private:
  enum Id : std::int64_t { q_id = 1, k_id, v_id, out_id, lse_id, dout_id, dq_id, dk_id, dv_id };

  struct Key {
    bool backward = false;
    bool deterministic = false;
    AttentionShape shape;
    detail::AttentionSlice slice;

    [[nodiscard]] auto tied() const {
      return std::tie(backward,
                      deterministic,
                      shape.rows,
                      shape.length,
                      shape.heads,
                      shape.kv_heads,
                      shape.head_dim,
                      shape.dtype,
                      slice.rows,
                      slice.kv_heads);
    }
    friend bool operator<(Key const& a, Key const& b) { return a.tied() < b.tied(); }
  };
  struct Plan {
    ::cudnn_frontend::graph::Graph graph;
    Bytes workspace_bytes = 0;
  };
  /// A handle is bound to one stream at a time, hence the lock around each use.
  struct OnDevice {
    std::mutex mutex;
    ::cudnnHandle_t handle = nullptr;
    std::map<Key, std::unique_ptr<Plan>> plans;  ///< Null: cuDNN does not compute it.
  };
  class Devices {
   public:
    OnDevice& at(DeviceId device) {
      std::lock_guard const lock(mutex_);
      return table_[device];
    }

   private:
    std::mutex mutex_;
    std::unordered_map<DeviceId, OnDevice> table_;
  };

  CudnnAttention() = default;

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
  [[nodiscard]] static Plan const* find(OnDevice& on, DeviceId device, Key const& key, Bytes most) {
    auto place = on.plans.find(key);
    if (place == on.plans.end()) {
      place = on.plans.emplace(key, make(on, device, key)).first;
    }
    auto const* const plan = place->second.get();
    return plan != nullptr && plan->workspace_bytes <= most ? plan : nullptr;
  }

  [[nodiscard]] static std::unique_ptr<Plan> make(OnDevice& on, DeviceId device, Key const& key) {
    namespace fe = ::cudnn_frontend;
    CurrentDevice const current(device);
    if (on.handle == nullptr) {
      check(::cudnnCreate(&on.handle), "cudnnCreate");
    }
    auto plan = std::make_unique<Plan>();
    describe(plan->graph, key);
    std::int64_t bytes = 0;
    if (plan->graph.build(on.handle, {fe::HeurMode_t::A, fe::HeurMode_t::FALLBACK}).is_bad() ||
        plan->graph.get_workspace_size(bytes).is_bad()) {
      return nullptr;
    }
    plan->workspace_bytes = static_cast<Bytes>(bytes);
    return plan;
  }

  static void describe(::cudnn_frontend::graph::Graph& graph, Key const& key) {
    namespace fe = ::cudnn_frontend;
    auto const& s = key.shape;
    auto const rows = key.slice.rows;
    auto const kv_heads = key.slice.kv_heads;
    auto const heads = s.heads / s.kv_heads * kv_heads;
    auto const type = s.dtype == DType::bf16 ? fe::DataType_t::BFLOAT16 : fe::DataType_t::HALF;
    // [rows, length, heads, head_dim] with the strides of all heads, in the order that cuDNN wants.
    auto const set_vectors = [&](auto& t, Id id, std::int64_t n, std::int64_t all) {
      t.set_uid(id).set_data_type(type);
      t.set_dim({rows, n, s.length, s.head_dim});
      t.set_stride({s.length * all * s.head_dim, s.head_dim, all * s.head_dim, 1});
    };
    auto const set_lse = [&](auto& t) {
      t.set_uid(lse_id).set_data_type(fe::DataType_t::FLOAT);
      t.set_dim({rows, heads, s.length, 1}).set_stride({heads * s.length, s.length, 1, 1});
    };
    auto const vectors = [&](Id id, char const* name, std::int64_t n, std::int64_t all) {
      auto t = fe::graph::Tensor_attributes().set_name(name);
      set_vectors(t, id, n, all);
      return graph.tensor(t);
    };
    graph.set_io_data_type(type)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    auto const q = vectors(q_id, "q", heads, s.heads);
    auto const k = vectors(k_id, "k", kv_heads, s.kv_heads);
    auto const v = vectors(v_id, "v", kv_heads, s.kv_heads);
    auto const scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_dim)));
    if (!key.backward) {
      auto options = fe::graph::SDPA_attributes().set_name("attention");
      options.set_generate_stats(true).set_attn_scale(scale);
      options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
          .set_diagonal_band_right_bound(0);
      auto const [out, lse] = graph.sdpa(q, k, v, options);
      out->set_output(true);
      set_vectors(*out, out_id, heads, s.heads);
      lse->set_output(true);
      set_lse(*lse);
      return;
    }
    auto const out = vectors(out_id, "out", heads, s.heads);
    auto const dout = vectors(dout_id, "dout", heads, s.heads);
    auto statistics = fe::graph::Tensor_attributes().set_name("lse");
    set_lse(statistics);
    auto options = fe::graph::SDPA_backward_attributes().set_name("attention_backward");
    options.set_attn_scale(scale).set_deterministic_algorithm(key.deterministic);
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
    auto const [dq, dk, dv] =
        graph.sdpa_backward(q, k, v, out, dout, graph.tensor(statistics), options);
    dq->set_output(true);
    set_vectors(*dq, dq_id, heads, s.heads);
    dk->set_output(true);
    set_vectors(*dk, dk_id, kv_heads, s.kv_heads);
    dv->set_output(true);
    set_vectors(*dv, dv_id, kv_heads, s.kv_heads);
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

#endif
