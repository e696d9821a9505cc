// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The kernels of examples/own_kernel_split.cpp, as functions that any compiler can call.

#include <cuda_runtime_api.h>

#include <cstdint>

namespace own_kernel {

/// All arrays are on the device and have \p rows rows of so many columns. They must live until \p
/// stream has run the work. No function here waits.
inline constexpr std::int64_t columns = 256;

/// y = x + w tanh(x), with one w for each column.
void bend(cudaStream_t stream, float* y, float const* x, float const* w, std::int64_t rows);

/// Overwrites \p dx unless it is null, and adds to \p dw.
void bend_back(cudaStream_t stream,
               float* dx,
               float* dw,
               float const* dy,
               float const* x,
               float const* w,
               std::int64_t rows);

/// Writes \p scale times half the sum of squares of x - y to \p loss, and its gradient to \p dx;
/// either may be null.
void half_square(cudaStream_t stream,
                 double* loss,
                 float* dx,
                 float const* x,
                 float const* y,
                 double scale,
                 std::int64_t rows);

}  // namespace own_kernel
