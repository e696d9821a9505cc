// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/roundpipe_cuda.cuh holds device code: include it from a .cu file only"
#endif

/// \file
/// \brief The CUDA parts in one include, for files that nvcc compiles.

#include <roundpipe/cuda/blas.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/cuda_event.hpp>
#include <roundpipe/cuda/cuda_fence.hpp>
#include <roundpipe/cuda/cuda_status.hpp>
#include <roundpipe/cuda/cuda_stream.hpp>
#include <roundpipe/cuda/device.hpp>
#include <roundpipe/cuda/device_memory.hpp>
#include <roundpipe/cuda/error.hpp>
#include <roundpipe/cuda/event.hpp>
#include <roundpipe/cuda/matmul.hpp>
#include <roundpipe/cuda/matmul_algorithms.hpp>
#include <roundpipe/cuda/matmul_plan.hpp>
#include <roundpipe/cuda/matmul_timing.hpp>
#include <roundpipe/cuda/pinned_memory.hpp>
#include <roundpipe/cuda/rounding.hpp>
#include <roundpipe/cuda/stream.hpp>
#include <roundpipe/cuda/stream_memory_ops.hpp>
#include <roundpipe/version.hpp>
