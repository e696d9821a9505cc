// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The fastest of some algorithms for a product, by measurement on random numbers.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/stopwatch.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/matmul/blas.hpp>
#include <roundpipe/cuda/matmul/matmul_plan.hpp>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <vector>

namespace roundpipe::cu::detail {

/// A pool of the current device's memory, apart from all others: unlike \c cudaFree, giving memory
/// back to it waits for no other stream.
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

/// Fills device memory with uniform numbers in [-1, 1). Products of zeros, or of one number, would
/// draw less power and run faster than real ones.
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

/// The fastest of \p candidates. cuBLASLt expects the first to be the best, so that another must be
/// two percent faster: noise then decides little. Measurements take at most \p most bytes of
/// memory, see \ref measured_problem. Returns the first where that is too little, or the device has
/// less.
///
/// The clock of a GPU follows its power: a candidate measured early, on a cool GPU, looks faster.
/// Hence each runs once, and those near the best then take turns. Those that fall behind run no
/// more: with products of 5 ms, time is what a search for micro-batches lacks.
[[nodiscard]] inline MatmulAlgorithm fastest(::cublasLtHandle_t handle,
                                             MatmulProblem const& chosen_for,
                                             std::vector<MatmulAlgorithm> const& candidates,
                                             Bytes most) {
  constexpr int rounds = 4;
  constexpr double turn_s = 1e-3;
  constexpr double margin = 0.98;
  constexpr double near = 1.2;     // as good as the best, for all that one run tells
  constexpr double behind = 1.05;  // when all have run as often
  constexpr std::ptrdiff_t finalists = 6;

  auto const measured = measured_problem(chosen_for, most);
  if (!measured) {
    return candidates.front();
  }
  auto const& problem = *measured;
  auto const [a_bytes, b_bytes, d_bytes] = matmul_bytes(problem);
  auto plan = unchosen_plan(problem);
  Stream const stream;
  TimingMemory memory(stream);
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
  // Seconds a product; infinite where the algorithm cannot run.
  auto const time_of = [&](MatmulAlgorithm const& candidate, int times) {
    plan.algorithm = candidate;
    watch.start(stream);
    for (int i = 0; i < times; ++i) {
      if (enqueue(handle, plan, 1, problem.adds, d, a, b, d, scratch, stream.get()) !=
          ::CUBLAS_STATUS_SUCCESS) {
        return std::numeric_limits<double>::infinity();
      }
    }
    return watch.stop(stream) / times;
  };
  struct Entry {
    MatmulAlgorithm algorithm;
    double once_s;  ///< The first estimate.
    double sum_s;   ///< Of all turns.
  };
  std::vector<Entry> entries;
  auto least = std::numeric_limits<double>::infinity();
  for (auto const& candidate : candidates) {
    (void)time_of(candidate, 1);  // loads the kernel
    auto const once = time_of(candidate, 1);
    entries.push_back({candidate, once, 0});
    least = std::min(least, once);
  }
  if (least == std::numeric_limits<double>::infinity()) {
    return candidates.front();
  }
  std::erase_if(entries, [&](Entry const& e) { return e.once_s > near * least; });
  if (std::ssize(entries) > finalists) {
    entries.erase(entries.begin() + finalists, entries.end());
  }
  auto const times = static_cast<int>(std::clamp(turn_s / least, 1., 50.));
  for (int round = 0; round <= rounds && entries.size() > 1; ++round) {
    auto least_sum_s = std::numeric_limits<double>::infinity();
    for (auto& entry : entries) {
      auto const seconds = time_of(entry.algorithm, times);
      entry.sum_s = round <= 1 ? seconds : entry.sum_s + seconds;  // the first round warms up
      least_sum_s = std::min(least_sum_s, entry.sum_s);
    }
    std::erase_if(entries, [&](Entry const& e) { return e.sum_s > behind * least_sum_s; });
  }
  auto const* best = &entries.front();
  for (auto const& entry : entries) {
    if (entry.sum_s < margin * best->sum_s) {
      best = &entry;
    }
  }
  return best->algorithm;
}

}  // namespace roundpipe::cu::detail
