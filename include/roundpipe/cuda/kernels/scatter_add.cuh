// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief The gradient of look-ups by token on the GPU: adds rows to a table in the order of the
/// tokens, not in the chance order of atomic additions.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/teams.cuh>
#include <roundpipe/nn/op_checks.hpp>

#include <cuda/std/span>
#include <cuda/std/type_traits>
#include <cuda/stream_ref>
#include <cuda_runtime_api.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace roundpipe::cu {

namespace detail {

/// An allocator that hands out parts of a block, one after another, and takes all back at once.
class BlockAllocator {
 public:
  using value_type = char;

  explicit BlockAllocator(DeviceBytes block) noexcept : block_(block) {}

  /// \throws Error (invalid_argument) when the block has no room left.
  char* allocate(std::ptrdiff_t bytes) {
    auto const size = align_up(static_cast<Bytes>(bytes));
    require(used_ + size <= block_.size(),
            Errc::invalid_argument,
            "embedding_backward has less scratch than embedding_scratch_bytes() says");
    auto* const result = block_.device_pointer() + used_;
    used_ += size;
    return reinterpret_cast<char*>(result);
  }
  void deallocate(char* /*memory*/, std::size_t /*bytes*/) noexcept {}

 private:
  DeviceBytes block_;
  Bytes used_ = 0;
};

/// Bytes that \ref scatter_add takes: two arrays and the sort's copies of them. Besides, the sort
/// keeps counters, and 1 KiB for each tile of elements; the smallest tile has thousands of
/// elements.
[[nodiscard]] inline Bytes scatter_add_bytes(std::int64_t tokens) noexcept {
  auto const count = static_cast<Bytes>(tokens < 0 ? 0 : tokens);
  return 4 * align_up(count * sizeof(std::uint32_t)) + align_up(count) + 64_KiB;
}

/// keys = tokens, rows = 0, 1, ...
template <class Token>
__global__ void __launch_bounds__(flat_threads)
    number_tokens_kernel(::cuda::std::span<Token const> tokens,
                         ::cuda::std::span<std::uint32_t> keys,
                         ::cuda::std::span<std::uint32_t> rows) {
  auto const step = std::size_t{gridDim.x} * flat_threads;
  for (auto i = std::size_t{blockIdx.x} * flat_threads + threadIdx.x; i < tokens.size();
       i += step) {
    keys[i] = static_cast<std::uint32_t>(tokens[i]);  // below 0: beyond any vocabulary
    rows[i] = static_cast<std::uint32_t>(i);
  }
}

inline constexpr int scatter_threads = 128;

/// table[keys[i]] += dy[rows[i]] in the order of i, for sorted keys. Of equal keys, the warps at
/// the first one add for all, each its own columns.
template <class S, class X>
__global__ void __launch_bounds__(scatter_threads, 6)
    scatter_add_kernel(std::int64_t width,
                       std::int64_t vocabulary,
                       std::int64_t blocks_per_row,
                       S table,
                       ::cuda::std::span<std::uint32_t const> keys,
                       ::cuda::std::span<std::uint32_t const> rows,
                       X dy) {
  auto const lane = threadIdx.x % warp_lanes;
  auto const blocks = static_cast<std::int64_t>(keys.size()) * blocks_per_row;
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    auto const first = static_cast<std::size_t>(block / blocks_per_row);
    auto const key = keys[first];
    if (key >= vocabulary || (first > 0 && keys[first - 1] == key)) {
      continue;
    }
    auto const at = (block % blocks_per_row * scatter_threads + threadIdx.x) * X::size;
    auto const count = count_at<X>(at, width);
    auto const to = static_cast<std::int64_t>(key) * width + at;
    Pack<X::size> sum{};
    if (count > 0) {
      sum = load_pack(table, to, X::whole ? X::size : count);
    }
    // Adds the rows that lanes from \p from on name: \p number of \p batch that load at a time.
    auto const add =
        [&]<int batch>(
            ::cuda::std::integral_constant<int, batch>, std::uint32_t row, int from, int number) {
          typename X::Raw raw[batch];
#pragma unroll
          for (int k = 0; k < batch; ++k) {
            auto const source = __shfl_sync(~0U, row, from + k);
            if (k < number && count > 0) {
              raw[k] = dy.load(source * width + at, X::whole ? X::size : count);
            }
          }
#pragma unroll
          for (int k = 0; k < batch; ++k) {
            if (k < number && count > 0) {
              auto const v = X::widen(raw[k]);
#pragma unroll
              for (int j = 0; j < X::size; ++j) {
                sum[j] += v[j];
              }
            }
          }
        };
    int found = warp_lanes;
    for (auto i = first; found == warp_lanes; i += warp_lanes) {
      bool const mine = i + lane < keys.size() && keys[i + lane] == key;
      auto const row = mine ? rows[i + lane] : 0;
      found = __popc(__ballot_sync(~0U, mine));
      int done = 0;
      for (; done + 8 <= found; done += 8) {
        add(::cuda::std::integral_constant<int, 8>{}, row, done, 8);
      }
      for (; done < found; done += 4) {
        add(::cuda::std::integral_constant<int, 4>{}, row, done, found - done);
      }
    }
    if (count > 0) {
      table.store(to, sum, X::whole ? X::size : count);
    }
  }
}

}  // namespace detail

/// Enqueues dtable[tokens[i]] += dy[i], in the order of i for each token, for \p e.rows tokens and
/// rows of \p e.width elements; tokens outside the vocabulary are left out. dtable is of f32, dy of
/// f32, bf16 or f16. Tensors and \p scratch must live until the work has run; \p scratch holds
/// detail::scatter_add_bytes(). Does not synchronize, and allocates nothing.
/// \throws Error (unsupported) for other types or 2^32 tokens, (invalid_argument) for less scratch.
template <detail::OnUse = detail::OnUse::compiled>
void embedding_backward(::cuda::stream_ref stream,
                        DeviceBytes scratch,
                        nn::RowExtents e,
                        DeviceTensor const& dtable,
                        DeviceTensor const& dy,
                        DeviceTensor const& tokens) {
  constexpr auto operation = "embedding_backward";
  detail::check_types(operation, {&dtable, &dy});
  detail::check_f32(operation, dtable);
  if (e.rows == 0 || e.width == 0) {
    return;
  }
  require(e.rows <= std::numeric_limits<std::uint32_t>::max(),
          Errc::unsupported,
          "embedding_backward: a GPU takes fewer than 2^32 tokens at a time");
  require(scratch.size() >= detail::scatter_add_bytes(e.rows),
          Errc::invalid_argument,
          "embedding_backward has less scratch than embedding_scratch_bytes() says");
  auto const count = static_cast<std::size_t>(e.rows);
  detail::BlockAllocator memory(scratch);
  auto const array = [&] {
    auto const bytes = static_cast<std::ptrdiff_t>(count * sizeof(std::uint32_t));
    return ::cuda::std::span<std::uint32_t>(
        reinterpret_cast<std::uint32_t*>(memory.allocate(bytes)), count);
  };
  auto const keys = array();
  auto const rows = array();
  detail::launch(operation,
                 stream,
                 detail::grid_of(detail::divide_up(e.rows, detail::flat_threads)),
                 dim3(detail::flat_threads),
                 0,
                 detail::number_tokens_kernel<std::int32_t>,
                 detail::elements<std::int32_t const>(tokens),
                 keys,
                 rows);
  try {  // a radix sort, which is stable; this policy neither synchronizes nor allocates elsewhere
    ::thrust::stable_sort_by_key(::thrust::cuda::par_nosync(memory).on(stream.get()),
                                 keys.data(),
                                 keys.data() + count,
                                 rows.data());
  } catch (::thrust::system_error const& error) {
    check(static_cast<::cudaError_t>(error.code().value()), operation);
    throw;
  }
  // An unaligned table takes the path of unaligned rows.
  auto const stride = detail::fit<detail::Packed<float, 4>>({&dtable}) ? e.width : 1;
  detail::visit_views({&dy}, stride, [&]<class X>(detail::Tag<X>) {
    using S = typename X::template With<float>;
    auto const blocks_per_row = detail::divide_up(e.width, detail::scatter_threads * X::size);
    detail::launch(operation,
                   stream,
                   detail::grid_of(e.rows * blocks_per_row),
                   dim3(detail::scatter_threads),
                   0,
                   detail::scatter_add_kernel<S, X>,
                   e.width,
                   dtable.shape()[0],
                   blocks_per_row,
                   S(dtable),
                   keys,
                   rows,
                   X(dy));
  });
}

}  // namespace roundpipe::cu
