// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Adds one tensor to another on a device.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/ptx_library.hpp>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace roundpipe::cu::detail {

/// The kernels, for all devices.
class SumKernels {
 public:
  /// Loads them; see \ref PtxLibrary.
  SumKernels()
      : library_(entry("f64", 3, R"(
  ld.global.f64 %d0, [%to_i];
  ld.global.f64 %d1, [%from_i];
  add.rn.f64 %d0, %d0, %d1;
  st.global.f64 [%to_i], %d0;)") +
                 entry("f32", 2, R"(
  ld.global.f32 %f0, [%to_i];
  ld.global.f32 %f1, [%from_i];
  add.rn.f32 %f0, %f0, %f1;
  st.global.f32 [%to_i], %f0;)") +
                 entry("bf16", 1, R"(
  ld.global.b16 %h0, [%to_i];
  ld.global.b16 %h1, [%from_i];
  mov.b32 %f0, {%zero, %h0};
  mov.b32 %f1, {%zero, %h1};
  add.rn.f32 %f0, %f0, %f1;
  cvt.rn.bf16.f32 %h0, %f0;
  st.global.b16 [%to_i], %h0;)") +
                 entry("f16", 1, R"(
  ld.global.b16 %h0, [%to_i];
  ld.global.b16 %h1, [%from_i];
  cvt.f32.f16 %f0, %h0;
  cvt.f32.f16 %f1, %h1;
  add.rn.f32 %f0, %f0, %f1;
  cvt.rn.f16.f32 %h0, %f0;
  st.global.b16 [%to_i], %h0;)")),
        f64_(library_.kernel("add_f64")),
        f32_(library_.kernel("add_f32")),
        bf16_(library_.kernel("add_bf16")),
        f16_(library_.kernel("add_f16")) {}

  /// Enqueues \p to += \p from on \p stream, whose device is current. Both have the same floating
  /// type and number of elements.
  void add(::cudaStream_t stream, DeviceTensor const& to, DeviceTensor const& from) const {
    if (to.size() == 0) {
      return;
    }
    void* to_elements = to.device_pointer();
    void const* from_elements = from.device_pointer();
    std::uint64_t count = to.size();
    void* arguments[] = {&to_elements, &from_elements, &count};
    PtxLibrary::launch(kernel(to.dtype()), stream, to.size(), arguments);
  }

 private:
  [[nodiscard]] ::cudaKernel_t kernel(DType type) const noexcept {
    switch (type) {
      case DType::f64:
        return f64_;
      case DType::bf16:
        return bf16_;
      case DType::f16:
        return f16_;
      default:
        return f32_;
    }
  }

  /// A loop over elements of 2^\p shift bytes; \p body adds one.
  static std::string entry(std::string const& type, int shift, std::string const& body) {
    return ".visible .entry add_" + type + R"((
    .param .u64 to, .param .u64 from, .param .u64 count) {
  .reg .pred %done;
  .reg .b16 %h<2>, %zero;
  .reg .b32 %lane, %block, %width, %blocks;
  .reg .f32 %f<2>;
  .reg .f64 %d<2>;
  .reg .b64 %to, %from, %count, %i, %first, %step, %offset, %to_i, %from_i;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u64 %count, [count];
  cvta.to.global.u64 %to, %to;
  cvta.to.global.u64 %from, %from;
  mov.u16 %zero, 0;
  mov.u32 %lane, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %first, %block, %width;
  cvt.u64.u32 %i, %lane;
  add.u64 %i, %first, %i;
  mul.wide.u32 %step, %blocks, %width;
next:
  setp.ge.u64 %done, %i, %count;
  @%done bra end;
  shl.b64 %offset, %i, )" +
           std::to_string(shift) + R"(;
  add.u64 %to_i, %to, %offset;
  add.u64 %from_i, %from, %offset;)" +
           body + R"(
  add.u64 %i, %i, %step;
  bra next;
end:
  ret;
}
)";
  }

  PtxLibrary library_;
  ::cudaKernel_t f64_;
  ::cudaKernel_t f32_;
  ::cudaKernel_t bf16_;
  ::cudaKernel_t f16_;
};

}  // namespace roundpipe::cu::detail
