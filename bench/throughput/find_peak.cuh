// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief What a GPU does at its best, as the options say, or measured.

#include <common/matmul_peak.cuh>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <throughput/speed.hpp>
#include <throughput/workload.hpp>

namespace throughput {

/// FLOPs a second of device 0: given, or of a large matrix product in \p type.
inline Peak find_peak(roundpipe::cu::CudaBackend& backend,
                      Workload const& workload,
                      roundpipe::DType type) {
  if (workload.peak_tflops > 0) {
    return {1e12 * workload.peak_tflops, "given"};
  }
  return {examples::matmul_peak(backend, type), "measured: a product of 8192 x 8192 matrices"};
}

}  // namespace throughput
