// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The three products of a linear map, by cuBLASLt.
///
/// Operands are both bf16, both f16 or both f32 (in true fp32, no tf32), results f32 or of the
/// operands' type; sums form in fp32 and are rounded once. Each function only enqueues, on
/// \c stream, whose device is \c device and current; tensors, scratch and \c algorithms must live
/// until it has run. \c scratch has \ref matmul_scratch_bytes() or more and is aligned to 256
/// bytes. The first call of a shape chooses its algorithm: see \ref MatmulAlgorithms.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/matmul/blas.hpp>
#include <roundpipe/cuda/matmul/matmul_algorithms.hpp>
#include <roundpipe/cuda/matmul/matmul_plan.hpp>

#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <bit>
#include <cstdint>
#include <string>

namespace roundpipe::cu {

namespace detail {

[[nodiscard]] inline std::uint16_t alignment_of(DeviceTensor const& t) noexcept {
  auto const address = reinterpret_cast<std::uintptr_t>(t.device_pointer());
  return static_cast<std::uint16_t>(1U << std::countr_zero(address | tensor_alignment_bytes));
}

/// \p d = \p scale op(a) op(b) + \p c, column by column; see \ref MatmulProblem.
inline void multiply(char const* operation,
                     ::cuda::stream_ref stream,
                     MatmulAlgorithms& algorithms,
                     DeviceId device,
                     DeviceBytes scratch,
                     MatmulProblem problem,
                     DeviceTensor const& d,
                     DeviceTensor const& a,
                     DeviceTensor const& b,
                     DeviceTensor const& c,
                     double scale = 1) {
  auto const type = a.dtype();
  bool const known = type == DType::f32 || type == DType::bf16 || type == DType::f16;
  bool const fits = d.dtype() == DType::f32 || d.dtype() == type;
  if (!known || b.dtype() != type || !fits || (c.present() && c.dtype() != d.dtype())) {
    std::string message(operation);
    message.append(": products of ").append(name_of(a.dtype())).append(" and ");
    message.append(name_of(b.dtype())).append(" to ").append(name_of(d.dtype()));
    if (c.present()) {
      message.append(" with an addend of ").append(name_of(c.dtype()));
    }
    throw Error(Errc::unsupported,
                message + "; operands are both f32, bf16 or f16, results of that type or f32");
  }
  if (d.size() == 0) {
    return;
  }
  if (problem.k == 0) {  // an empty sum
    if (!c.present()) {
      check(::cudaMemsetAsync(d.device_pointer(), 0, d.size_bytes(), stream.get()),
            "cudaMemsetAsync");
    } else if (c.device_pointer() != d.device_pointer()) {
      check(::cudaMemcpyAsync(d.device_pointer(),
                              c.device_pointer(),
                              d.size_bytes(),
                              ::cudaMemcpyDeviceToDevice,
                              stream.get()),
            "cudaMemcpyAsync");
    }
    return;
  }
  require(scratch.size() >= matmul_scratch_bytes(),
          Errc::invalid_argument,
          "a matrix product has less scratch than matmul_scratch_bytes()");
  auto const& addend = c.present() ? c : d;
  problem.operands = type;
  problem.result = d.dtype();
  problem.adds = c.present();
  problem.alignments = {alignment_of(a), alignment_of(b), alignment_of(addend), alignment_of(d)};
  auto const plan = algorithms.find(device, problem);
  auto const status = enqueue(algorithms.handle(device),
                              *plan,
                              static_cast<float>(scale),
                              problem.adds,
                              d.device_pointer(),
                              a.device_pointer(),
                              b.device_pointer(),
                              addend.device_pointer(),
                              scratch.device_pointer(),
                              stream.get());
  if (status != ::CUBLAS_STATUS_SUCCESS) [[unlikely]] {
    check(status, (std::string(operation) + ": " + to_string(problem)).c_str());
  }
}

}  // namespace detail

/// y = scale x weightᵀ + addend, of x [rows, in], weight [out, in], y and addend [rows, out]. The
/// addend is optional, has y's type, and may be y itself.
/// \throws Error (unsupported) for other types, or where cuBLASLt has no algorithm.
inline void linear(::cuda::stream_ref stream,
                   MatmulAlgorithms& algorithms,
                   DeviceId device,
                   DeviceBytes scratch,
                   LinearExtents e,
                   DeviceTensor const& y,
                   DeviceTensor const& x,
                   DeviceTensor const& weight,
                   DeviceTensor const& addend,
                   double scale = 1) {
  // yᵀ = weight xᵀ; weight, read column by column, is weightᵀ
  MatmulProblem const problem{.m = e.out, .n = e.rows, .k = e.in, .transpose_a = true};
  detail::multiply(
      "linear", stream, algorithms, device, scratch, problem, y, weight, x, addend, scale);
}

/// dx = scale dy weight + addend, of dy [rows, out], weight [out, in], dx and addend [rows, in];
/// else as
/// \ref linear.
inline void linear_input_gradient(::cuda::stream_ref stream,
                                  MatmulAlgorithms& algorithms,
                                  DeviceId device,
                                  DeviceBytes scratch,
                                  LinearExtents e,
                                  DeviceTensor const& dx,
                                  DeviceTensor const& dy,
                                  DeviceTensor const& weight,
                                  DeviceTensor const& addend,
                                  double scale = 1) {
  // dxᵀ = weightᵀ dyᵀ
  MatmulProblem const problem{.m = e.in, .n = e.rows, .k = e.out};
  detail::multiply("linear_input_gradient",
                   stream,
                   algorithms,
                   device,
                   scratch,
                   problem,
                   dx,
                   weight,
                   dy,
                   addend,
                   scale);
}

/// dweight += dyᵀ x, of dy [rows, out], x [rows, in] and dweight [out, in], which is f32. Does
/// nothing when dweight is absent.
/// \throws Error (unsupported) for other types, or where cuBLASLt has no algorithm.
inline void linear_weight_gradient(::cuda::stream_ref stream,
                                   MatmulAlgorithms& algorithms,
                                   DeviceId device,
                                   DeviceBytes scratch,
                                   LinearExtents e,
                                   DeviceTensor const& dweight,
                                   DeviceTensor const& dy,
                                   DeviceTensor const& x) {
  if (!dweight.present()) {
    return;
  }
  require(dweight.dtype() == DType::f32,
          Errc::unsupported,
          "linear_weight_gradient: the sum of gradients must be f32");
  // dweightᵀ = xᵀ dy; dy, read column by column, is dyᵀ
  MatmulProblem const problem{.m = e.in, .n = e.out, .k = e.rows, .transpose_b = true};
  detail::multiply("linear_weight_gradient",
                   stream,
                   algorithms,
                   device,
                   scratch,
                   problem,
                   dweight,
                   x,
                   dy,
                   dweight);
}

}  // namespace roundpipe::cu
