// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a GPU does at its best: a large matrix product.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <roundpipe/runtime/probe/layer_probe.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace examples {

/// FLOPs a second of device 0 in a product of 8,192 x 8,192 matrices of \p type: the median of
/// several.
[[nodiscard]] inline double matmul_peak(roundpipe::cu::CudaBackend& backend,
                                        roundpipe::DType type) {
  namespace rp = roundpipe;
  constexpr std::int64_t extent = 8192;
  constexpr std::size_t repetitions = 15;
  rp::DeviceId const device(0);
  auto stream = backend.make_stream(device, rp::LaneKind::compute);
  rp::detail::RandomOperands<rp::cu::CudaBackend> operands(backend);
  auto const bytes = static_cast<rp::Bytes>(extent * extent) * rp::size_of(type);
  auto const memory =
      backend.allocate_device(device, 3 * bytes + rp::cu::CudaOps::linear_scratch_bytes());
  rp::TensorCarver carver(memory.bytes());
  auto const take = [&] { return carver.take({extent, extent}, type); };
  auto const x = take();
  auto const weight = take();
  auto const y = take();
  operands.fill(stream, x);
  operands.fill(stream, weight);
  rp::cu::CudaOps const ops(
      stream, memory.bytes().subspan(carver.used_bytes(), rp::cu::CudaOps::linear_scratch_bytes()));
  auto begin = backend.make_event(device);
  auto end = backend.make_event(device);
  std::vector<double> times;
  for (std::size_t i = 0; i < repetitions; ++i) {
    stream.record(begin);
    ops.linear(y, x, weight, rp::absent);
    stream.record(end);
    end.wait();
    times.push_back(end.seconds_since(begin));
  }
  std::ranges::sort(times);
  auto const side = static_cast<double>(extent);
  return 2 * side * side * side / times[times.size() / 2];
}

}  // namespace examples
