// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Rounds fp32 to a 16-bit type on a device.

#include <roundpipe/cuda/ptx_library.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace roundpipe::cu::detail {

/// The kernels, for all devices.
class RoundingKernels {
 public:
  /// Loads them; see \ref PtxLibrary.
  RoundingKernels()
      : library_(entry("bf16") + entry("f16")),
        to_bf16_(library_.kernel("round_bf16")),
        to_f16_(library_.kernel("round_f16")) {}

  [[nodiscard]] ::cudaKernel_t to_bf16() const noexcept { return to_bf16_; }
  [[nodiscard]] ::cudaKernel_t to_f16() const noexcept { return to_f16_; }

  /// Enqueues \p kernel on \p stream, whose device is current: \p count numbers from \p from.
  static void launch(::cudaKernel_t kernel,
                     ::cudaStream_t stream,
                     void* to,
                     float const* from,
                     std::size_t count) {
    if (count == 0) {
      return;
    }
    bool const aligned = reinterpret_cast<std::uintptr_t>(from) % 16 == 0 &&
                         reinterpret_cast<std::uintptr_t>(to) % 8 == 0;
    std::uint64_t quads = aligned ? count / 4 : 0;
    std::uint64_t numbers = count;
    void* arguments[] = {&to, &from, &quads, &numbers};
    PtxLibrary::launch(kernel, stream, std::max<std::size_t>(quads, count - 4 * quads), arguments);
  }

 private:
  /// A loop over quads of numbers, then one over the rest.
  static std::string entry(std::string const& type) {
    return ".visible .entry round_" + type + R"((
    .param .u64 to, .param .u64 from, .param .u64 quads, .param .u64 count) {
  .reg .pred %done;
  .reg .b16 %half;
  .reg .b32 %lane, %block, %width, %blocks, %low, %high;
  .reg .f32 %f<4>;
  .reg .b64 %to, %from, %quads, %count, %i, %first, %step, %offset, %address;
  ld.param.u64 %to, [to];
  ld.param.u64 %from, [from];
  ld.param.u64 %quads, [quads];
  ld.param.u64 %count, [count];
  cvta.to.global.u64 %to, %to;
  cvta.to.global.u64 %from, %from;
  mov.u32 %lane, %tid.x;
  mov.u32 %block, %ctaid.x;
  mov.u32 %width, %ntid.x;
  mov.u32 %blocks, %nctaid.x;
  mul.wide.u32 %first, %block, %width;
  cvt.u64.u32 %i, %lane;
  add.u64 %first, %first, %i;
  mul.wide.u32 %step, %blocks, %width;
  mov.u64 %i, %first;
four:
  setp.ge.u64 %done, %i, %quads;
  @%done bra rest;
  shl.b64 %offset, %i, 4;
  add.u64 %address, %from, %offset;
  ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%address];
  cvt.rn.)" +
           type + R"(x2.f32 %low, %f1, %f0;
  cvt.rn.)" +
           type + R"(x2.f32 %high, %f3, %f2;
  shl.b64 %offset, %i, 3;
  add.u64 %address, %to, %offset;
  st.global.v2.b32 [%address], {%low, %high};
  add.u64 %i, %i, %step;
  bra four;
rest:
  shl.b64 %i, %quads, 2;
  add.u64 %i, %i, %first;
one:
  setp.ge.u64 %done, %i, %count;
  @%done bra end;
  shl.b64 %offset, %i, 2;
  add.u64 %address, %from, %offset;
  ld.global.f32 %f0, [%address];
  cvt.rn.)" +
           type + R"(.f32 %half, %f0;
  shl.b64 %offset, %i, 1;
  add.u64 %address, %to, %offset;
  st.global.b16 [%address], %half;
  add.u64 %i, %i, %step;
  bra one;
end:
  ret;
}
)";
  }

  PtxLibrary library_;
  ::cudaKernel_t to_bf16_;
  ::cudaKernel_t to_f16_;
};

}  // namespace roundpipe::cu::detail
