// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The kernels of examples/own_kernel_split.cpp, as functions that any compiler can call.

#include <roundpipe/core/span.hpp>

#include <cuda_runtime_api.h>

#include <cstdint>

namespace own_kernel {

/// Views have rows of so many columns, all of the same number of rows, or are empty. No function
/// here waits.
inline constexpr std::int64_t columns = 256;

using In = roundpipe::TensorView<float const>;
using Out = roundpipe::TensorView<float>;

/// y = x + w tanh(x), with one w for each column.
void bend(cudaStream_t stream, Out y, In x, In w);

/// Overwrites \p dx unless it is empty, and adds to \p dw.
void bend_back(cudaStream_t stream, Out dx, Out dw, In dy, In x, In w);

/// Writes \p scale times half the sum of squares of x - y to \p loss, and its gradient to \p dx;
/// either may be empty.
void half_square(
    cudaStream_t stream, roundpipe::TensorView<double> loss, Out dx, In x, In y, double scale);

}  // namespace own_kernel
