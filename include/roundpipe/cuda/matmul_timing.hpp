// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The fastest of some algorithms for a product, by measurement on random numbers.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/cuda/blas.hpp>
#include <roundpipe/cuda/error.hpp>
#include <roundpipe/cuda/matmul_plan.hpp>
#include <roundpipe/cuda/stream.hpp>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

namespace roundpipe::cu::detail {

/// A pool of the current device's memory, apart from all others: to give memory back to it, unlike
/// \c cudaFree, waits for no other stream.
class TimingMemory {
 public:
  /// \p stream must outlive it.
  explicit TimingMemory(Stream const& stream) : stream_(stream) {
    ::cudaMemPoolProps properties{};
    properties.allocType = ::cudaMemAllocationTypePinned;
    properties.location.type = ::cudaMemLocationTypeDevice;
    check(::cudaGetDevice(&properties.location.id), "cudaGetDevice");
    check(::cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
  }
  TimingMemory(TimingMemory const&) = delete;
  TimingMemory& operator=(TimingMemory const&) = delete;
  ~TimingMemory() {
    for (void* const block : blocks_) {
      (void)::cudaFreeAsync(block, stream_.get());
    }
    (void)::cudaStreamSynchronize(stream_.get());
    (void)::cudaMemPoolDestroy(pool_);
  }

  /// \p bytes at an address that is a multiple of \p alignment, and of no higher power of two below
  /// 256. Null where the device has no such block left.
  [[nodiscard]] std::byte* take(Bytes bytes, Bytes alignment) {
    void* block = nullptr;
    auto const status =
        ::cudaMallocFromPoolAsync(&block, bytes + tensor_alignment_bytes, pool_, stream_.get());
    if (status != ::cudaSuccess) {
      (void)::cudaGetLastError();
      return nullptr;
    }
    blocks_.push_back(block);
    auto const skip = alignment < tensor_alignment_bytes ? alignment : Bytes{0};
    return static_cast<std::byte*>(block) + skip;
  }

 private:
  Stream const& stream_;
  ::cudaMemPool_t pool_ = nullptr;
  std::vector<void*> blocks_;
};

/// A span of a stream's time.
class Stopwatch {
 public:
  Stopwatch() {
    check(::cudaEventCreate(&begin_), "cudaEventCreate");
    if (auto const status = ::cudaEventCreate(&end_); status != ::cudaSuccess) {
      (void)::cudaEventDestroy(begin_);
      check(status, "cudaEventCreate");
    }
  }
  Stopwatch(Stopwatch const&) = delete;
  Stopwatch& operator=(Stopwatch const&) = delete;
  ~Stopwatch() {
    (void)::cudaEventDestroy(begin_);
    (void)::cudaEventDestroy(end_);
  }

  void start(Stream const& stream) {
    check(::cudaEventRecord(begin_, stream.get()), "cudaEventRecord");
  }
  /// Milliseconds since \ref start. Blocks until the stream is here.
  [[nodiscard]] float stop(Stream const& stream) {
    check(::cudaEventRecord(end_, stream.get()), "cudaEventRecord");
    check(::cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    check(::cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  ::cudaEvent_t begin_ = nullptr;
  ::cudaEvent_t end_ = nullptr;
};

/// Fills device memory with uniform numbers in [-1, 1): products of zeros, or of one number, draw
/// less power and run faster than real ones.
inline void fill_random(std::byte* to, Bytes bytes, DType type, Stream const& stream) {
  std::vector<std::byte> block(std::min(bytes, Bytes{1} << 20));
  std::uint64_t state = 1;
  for (Bytes at = 0; at < block.size(); at += size_of(type)) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX
    auto const number = static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31F;
    if (type == DType::f32) {
      std::memcpy(&block[at], &number, sizeof number);
    } else {
      auto const bits = type == DType::bf16 ? BFloat16(number).bits() : Float16(number).bits();
      std::memcpy(&block[at], &bits, sizeof bits);
    }
  }
  check(::cudaMemcpyAsync(to, block.data(), block.size(), ::cudaMemcpyDefault, stream.get()),
        "cudaMemcpyAsync");
  for (Bytes done = block.size(); done < bytes;) {
    auto const more = std::min(done, bytes - done);
    check(::cudaMemcpyAsync(to + done, to, more, ::cudaMemcpyDefault, stream.get()),
          "cudaMemcpyAsync");
    done += more;
  }
  stream.sync();  // the block must live as long as its copy
}

/// The fastest of \p candidates, the first of which is best by expectation: another must be one
/// percent faster, so that noise decides little. The first, where there is no memory to measure.
[[nodiscard]] inline MatmulAlgorithm fastest(::cublasLtHandle_t handle,
                                             MatmulPlan plan,
                                             MatmulProblem const& problem,
                                             std::vector<MatmulAlgorithm> const& candidates) {
  constexpr float enough_ms = 2;  // for one measurement
  constexpr float margin = 0.99F;
  constexpr float hopeless = 1.5F;

  Stream const stream;
  TimingMemory memory(stream);
  auto const bytes = [](std::int64_t rows, std::int64_t columns, DType type) {
    return static_cast<Bytes>(rows) * static_cast<Bytes>(columns) * size_of(type);
  };
  auto const a_bytes = bytes(problem.m, problem.k, problem.operands);
  auto const b_bytes = bytes(problem.k, problem.n, problem.operands);
  auto const d_bytes = bytes(problem.m, problem.n, problem.result);
  auto* const a = memory.take(a_bytes, problem.alignments[0]);
  auto* const b = memory.take(b_bytes, problem.alignments[1]);
  auto* const d = memory.take(d_bytes, problem.alignments[3]);
  auto* const scratch = memory.take(matmul_scratch_bytes(), tensor_alignment_bytes);
  if (a == nullptr || b == nullptr || d == nullptr || scratch == nullptr) {
    return candidates.front();
  }
  fill_random(a, a_bytes, problem.operands, stream);
  fill_random(b, b_bytes, problem.operands, stream);
  check(::cudaMemsetAsync(d, 0, d_bytes, stream.get()), "cudaMemsetAsync");

  Stopwatch watch;
  // Milliseconds a product, from some that take as long as enough_ms; none where it cannot run.
  auto const time_of = [&](MatmulAlgorithm const& candidate, int times) -> std::optional<float> {
    plan.algorithm = candidate;
    watch.start(stream);
    for (int i = 0; i < times; ++i) {
      if (enqueue(handle, plan, problem.adds, d, a, b, d, scratch, stream.get()) !=
          ::CUBLAS_STATUS_SUCCESS) {
        return std::nullopt;
      }
    }
    return watch.stop(stream) / static_cast<float>(times);
  };
  auto best = candidates.front();
  auto best_ms = std::numeric_limits<float>::infinity();
  for (auto const& candidate : candidates) {
    if (!time_of(candidate, 1)) {  // it also loads the kernel
      continue;
    }
    auto const first = time_of(candidate, 1);
    if (!first || *first > hopeless * best_ms) {
      continue;
    }
    auto const times = static_cast<int>(std::clamp(enough_ms / *first, 1.F, 50.F));
    auto const ms =
        std::min(time_of(candidate, times), time_of(candidate, times));  // none is least
    if (ms && *ms < margin * best_ms) {
      best = candidate;
      best_ms = *ms;
    }
  }
  return best;
}

}  // namespace roundpipe::cu::detail
