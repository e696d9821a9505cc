// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A matrix product as cuBLASLt sees it, and what it takes to enqueue one.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/cuda/matmul/blas.hpp>

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

namespace roundpipe::cu {

/// The scratch of every product: cuBLASLt's recommendation for Hopper.
[[nodiscard]] constexpr Bytes matmul_scratch_bytes() noexcept {
  return Bytes{32} << 20;
}

/// \brief d = op(a) op(b) + c, with matrices as cuBLASLt stores them: column by column.
///
/// A dense row-major [r, s] is a dense column-major [s, r], so that transposing the whole product
/// makes all of ours fit. op(a) is [m, k], op(b) [k, n], c and d are [m, n].
struct MatmulProblem {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType operands = DType::f32;  ///< Of a and b.
  DType result = DType::f32;    ///< Of c and d.
  bool transpose_a = false;     ///< a is stored as [k, m].
  bool transpose_b = false;     ///< b is stored as [n, k].
  bool adds = false;            ///< Whether there is a c; it may be d.
  /// Bytes, powers of two up to 256, that the addresses of a, b, c, d are multiples of.
  std::array<std::uint16_t, 4> alignments{256, 256, 256, 256};

  friend bool operator==(MatmulProblem const&, MatmulProblem const&) = default;
};

[[nodiscard]] inline std::string to_string(MatmulProblem const& p) {
  return std::string(name_of(p.result)) + '[' + std::to_string(p.n) + ", " + std::to_string(p.m) +
         "] of " + std::string(name_of(p.operands)) + " products over " + std::to_string(p.k);
}

[[nodiscard]] inline std::size_t hash_of(MatmulProblem const& p) noexcept {
  std::uint64_t h = 0;
  auto const mix = [&h](std::uint64_t value) {
    h = (h ^ value) * 0x9e3779b97f4a7c15U;  // 2^64 over the golden ratio
    h ^= h >> 32;
  };
  mix(static_cast<std::uint64_t>(p.m));
  mix(static_cast<std::uint64_t>(p.n));
  mix(static_cast<std::uint64_t>(p.k));
  mix(static_cast<std::uint64_t>(p.operands) | static_cast<std::uint64_t>(p.result) << 8 |
      std::uint64_t{p.transpose_a} << 16 | std::uint64_t{p.transpose_b} << 17 |
      std::uint64_t{p.adds} << 18);
  mix(p.alignments[0] | std::uint64_t{p.alignments[1]} << 16 |
      std::uint64_t{p.alignments[2]} << 32 | std::uint64_t{p.alignments[3]} << 48);
  return static_cast<std::size_t>(h);
}

/// Writes \p p as words of a line, which \ref read reads.
inline void write(std::ostream& out, MatmulProblem const& p) {
  out << p.m << ' ' << p.n << ' ' << p.k << ' ' << static_cast<int>(p.operands) << ' '
      << static_cast<int>(p.result) << ' ' << p.transpose_a << ' ' << p.transpose_b << ' '
      << p.adds;
  for (auto const alignment : p.alignments) {
    out << ' ' << alignment;
  }
}

/// Whether \p in held what \ref write wrote.
[[nodiscard]] inline bool read(std::istream& in, MatmulProblem& p) {
  int operands = 0;
  int result = 0;
  in >> p.m >> p.n >> p.k >> operands >> result >> p.transpose_a >> p.transpose_b >> p.adds;
  for (auto& alignment : p.alignments) {
    in >> alignment;
  }
  auto const known = [](int type) {
    return type == static_cast<int>(DType::f32) || type == static_cast<int>(DType::bf16) ||
           type == static_cast<int>(DType::f16);
  };
  p.operands = static_cast<DType>(operands);
  p.result = static_cast<DType>(result);
  return in && p.m > 0 && p.n > 0 && p.k > 0 && known(operands) && known(result);
}

/// One of cuBLASLt's algorithms, configured. A name of our own: nvcc 13.0 breaks on a vector of the
/// nameless struct behind theirs.
struct MatmulAlgorithm : ::cublasLtMatmulAlgo_t {};

/// What a call of \c cublasLtMatmul takes besides pointers. All devices of a kind may use it, and
/// several threads at once: cuBLASLt only reads it.
struct MatmulPlan {
  ::cublasLtMatmulDescOpaque_t product{};
  ::cublasLtMatrixLayoutOpaque_t a{};
  ::cublasLtMatrixLayoutOpaque_t b{};
  ::cublasLtMatrixLayoutOpaque_t d{};  ///< Of c, too.
  MatmulAlgorithm algorithm{};
};

/// Enqueues \p scale times the product of \p plan, + \p c, which is read only where \p adds, and
/// may be \p d. Does not synchronize.
/// \p handle is of the current device; \p scratch has \ref matmul_scratch_bytes().
[[nodiscard]] inline ::cublasStatus_t enqueue(::cublasLtHandle_t handle,
                                              MatmulPlan const& plan,
                                              float scale,
                                              bool adds,
                                              void* d,
                                              void const* a,
                                              void const* b,
                                              void const* c,
                                              void* scratch,
                                              ::cudaStream_t stream) noexcept {
  float const beta = adds ? 1 : 0;
  auto& p = const_cast<MatmulPlan&>(plan);  // handles have no const form
  return ::cublasLtMatmul(handle,
                          &p.product,
                          &scale,
                          a,
                          &p.a,
                          b,
                          &p.b,
                          &beta,
                          c,
                          &p.d,
                          d,
                          &p.d,
                          &p.algorithm,
                          scratch,
                          matmul_scratch_bytes(),
                          stream);
}

/// The plan of \p p without its algorithm.
[[nodiscard]] inline MatmulPlan unchosen_plan(MatmulProblem const& p) {
  auto const type = [](DType t) {
    return t == DType::bf16 ? ::CUDA_R_16BF : t == DType::f16 ? ::CUDA_R_16F : ::CUDA_R_32F;
  };
  auto const layout = [](::cublasLtMatrixLayoutOpaque_t& l,
                         ::cudaDataType_t of,
                         std::int64_t rows,
                         std::int64_t columns) {
    check(::cublasLtMatrixLayoutInit(
              &l, of, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows),
          "cublasLtMatrixLayoutInit");
  };
  MatmulPlan plan;
  // No tf32 here: that is another compute type.
  check(::cublasLtMatmulDescInit(&plan.product, ::CUBLAS_COMPUTE_32F, ::CUDA_R_32F),
        "cublasLtMatmulDescInit");
  auto const transpose = [&](::cublasLtMatmulDescAttributes_t which, bool yes) {
    std::int32_t const value = yes ? ::CUBLAS_OP_T : ::CUBLAS_OP_N;
    check(::cublasLtMatmulDescSetAttribute(&plan.product, which, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  };
  transpose(::CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_a);
  transpose(::CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_b);
  layout(plan.a, type(p.operands), p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k);
  layout(plan.b, type(p.operands), p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n);
  layout(plan.d, type(p.result), p.m, p.n);
  return plan;
}

namespace detail {

/// The bytes of each matrix of a product.
struct MatmulBytes {
  Bytes a = 0;
  Bytes b = 0;
  Bytes d = 0;  ///< The result.
};

[[nodiscard]] constexpr MatmulBytes matmul_bytes(MatmulProblem const& p) noexcept {
  auto const bytes = [](std::int64_t rows, std::int64_t columns, DType type) {
    return static_cast<Bytes>(rows) * static_cast<Bytes>(columns) * size_of(type);
  };
  return {bytes(p.m, p.k, p.operands), bytes(p.k, p.n, p.operands), bytes(p.m, p.n, p.result)};
}

/// What a pool of memory may take for \p bytes. It grows by whole blocks, of 32 MiB at most, as far
/// as is known.
[[nodiscard]] constexpr Bytes pooled_bytes(Bytes bytes) noexcept {
  return align_up(bytes + tensor_alignment_bytes, 32_MiB);
}

/// What measurements of \p problem take of a device.
[[nodiscard]] constexpr Bytes measuring_bytes(MatmulProblem const& problem) noexcept {
  auto const [a, b, d] = matmul_bytes(problem);
  return pooled_bytes(a) + pooled_bytes(b) + pooled_bytes(d) + pooled_bytes(matmul_scratch_bytes());
}

/// The product that stands for \p problem where algorithms are measured, so that operands of
/// gigabytes need not be held: the result has at most 2^14 rows and columns, and all takes at most
/// \p most bytes. What tiles leave at the edges stays, and so many tiles run in many waves. None
/// where \p most bytes hold only products of a few tiles.
[[nodiscard]] constexpr std::optional<MatmulProblem> measured_problem(MatmulProblem problem,
                                                                      Bytes most) noexcept {
  constexpr std::int64_t tile = 256;  // a multiple of all tiles
  auto const shorten = [](std::int64_t& extent, std::int64_t longest) {
    auto const surplus = std::max<std::int64_t>(0, extent - longest);
    extent -= (surplus + tile - 1) / tile * tile;
  };
  shorten(problem.m, std::int64_t{1} << 14);
  shorten(problem.n, std::int64_t{1} << 14);
  while (measuring_bytes(problem) > most) {
    auto* longest = &problem.k;
    for (auto* const extent : {&problem.m, &problem.n}) {
      longest = *extent > *longest ? extent : longest;
    }
    if (*longest <= 8 * tile) {
      return std::nullopt;
    }
    shorten(*longest, *longest / 2);
  }
  return problem;
}

/// How many algorithms to choose from.
inline constexpr int max_candidates = 16;

/// cuBLASLt's algorithms for \p problem, which it expects to be the fastest first, of those that
/// need no address to be a multiple of more than \p most_alignment bytes.
/// \throws Error (unsupported) when it has none.
[[nodiscard]] inline std::vector<MatmulAlgorithm> propose(::cublasLtHandle_t handle,
                                                          MatmulPlan& plan,
                                                          MatmulProblem const& problem,
                                                          std::uint32_t most_alignment) {
  ::cublasLtMatmulPreferenceOpaque_t preference{};
  check(::cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit");
  auto const prefer = [&]<class T>(::cublasLtMatmulPreferenceAttributes_t which, T value) {
    check(::cublasLtMatmulPreferenceSetAttribute(&preference, which, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::size_t{matmul_scratch_bytes()});
  // Split sums: parts in fp32 in the workspace, added by a second kernel, and rounded once.
  prefer(::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<std::uint32_t>(::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  std::array const attributes{::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                              ::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                              ::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                              ::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    prefer(attributes[i], std::min<std::uint32_t>(problem.alignments[i], most_alignment));
  }
  std::array<::cublasLtMatmulHeuristicResult_t, max_candidates> results{};
  int count = 0;
  auto const status = ::cublasLtMatmulAlgoGetHeuristic(handle,
                                                       &plan.product,
                                                       &plan.a,
                                                       &plan.b,
                                                       &plan.d,
                                                       &plan.d,
                                                       &preference,
                                                       max_candidates,
                                                       results.data(),
                                                       &count);
  std::vector<MatmulAlgorithm> found;
  if (status == ::CUBLAS_STATUS_SUCCESS) {
    for (auto const& result : std::span(results).first(static_cast<std::size_t>(count))) {
      if (result.state == ::CUBLAS_STATUS_SUCCESS &&
          result.workspaceSize <= matmul_scratch_bytes()) {
        found.push_back({result.algo});
      }
    }
  } else if (status != ::CUBLAS_STATUS_NOT_SUPPORTED) {
    check(status, "cublasLtMatmulAlgoGetHeuristic");
  }
  if (found.empty()) {
    throw Error(Errc::unsupported, "cuBLASLt has no algorithm for " + to_string(problem));
  }
  return found;
}

/// Whether \p plan's algorithm computes it within the scratch.
[[nodiscard]] inline bool runs(::cublasLtHandle_t handle, MatmulPlan& plan) {
  ::cublasLtMatmulHeuristicResult_t result{};
  return ::cublasLtMatmulAlgoCheck(
             handle, &plan.product, &plan.a, &plan.b, &plan.d, &plan.d, &plan.algorithm, &result) ==
             ::CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= matmul_scratch_bytes();
}

}  // namespace detail

}  // namespace roundpipe::cu
