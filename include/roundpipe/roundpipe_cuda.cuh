// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/roundpipe_cuda.cuh holds device code: include it from a .cu file only"
#endif

/// \file
/// \brief The CUDA parts in one include, for files that nvcc compiles.

#include <roundpipe/cuda/attention/attention_cudnn.hpp>
#include <roundpipe/cuda/attention/attention_plan.hpp>
#include <roundpipe/cuda/attention/cudnn_graph.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/cuda_event.hpp>
#include <roundpipe/cuda/cuda_fence.hpp>
#include <roundpipe/cuda/cuda_options.hpp>
#include <roundpipe/cuda/cuda_resources.hpp>
#include <roundpipe/cuda/cuda_slab.hpp>
#include <roundpipe/cuda/cuda_status.hpp>
#include <roundpipe/cuda/cuda_stream.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/driver_function.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/event.hpp>
#include <roundpipe/cuda/device/link_speed.hpp>
#include <roundpipe/cuda/device/memory_limits.hpp>
#include <roundpipe/cuda/device/other_processes.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/cuda/device/shared_speed.hpp>
#include <roundpipe/cuda/device/stopwatch.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/device/stream_memory_ops.hpp>
#include <roundpipe/cuda/kernels/attention_backward.cuh>
#include <roundpipe/cuda/kernels/attention_forward.cuh>
#include <roundpipe/cuda/kernels/attention_launch.cuh>
#include <roundpipe/cuda/kernels/attention_tiles.cuh>
#include <roundpipe/cuda/kernels/cross_entropy.cuh>
#include <roundpipe/cuda/kernels/dropout.cuh>
#include <roundpipe/cuda/kernels/embedding.cuh>
#include <roundpipe/cuda/kernels/launch.cuh>
#include <roundpipe/cuda/kernels/packs.cuh>
#include <roundpipe/cuda/kernels/partial_sums.cuh>
#include <roundpipe/cuda/kernels/philox.cuh>
#include <roundpipe/cuda/kernels/rms_norm.cuh>
#include <roundpipe/cuda/kernels/rms_norm_backward.cuh>
#include <roundpipe/cuda/kernels/rotary.cuh>
#include <roundpipe/cuda/kernels/rotary_backward.cuh>
#include <roundpipe/cuda/kernels/rotary_plan.cuh>
#include <roundpipe/cuda/kernels/scatter_add.cuh>
#include <roundpipe/cuda/kernels/sum.cuh>
#include <roundpipe/cuda/kernels/swiglu.cuh>
#include <roundpipe/cuda/kernels/teams.cuh>
#include <roundpipe/cuda/matmul/blas.hpp>
#include <roundpipe/cuda/matmul/matmul.hpp>
#include <roundpipe/cuda/matmul/matmul_algorithms.hpp>
#include <roundpipe/cuda/matmul/matmul_file.hpp>
#include <roundpipe/cuda/matmul/matmul_plan.hpp>
#include <roundpipe/cuda/matmul/matmul_timing.hpp>
#include <roundpipe/cuda/ops/attention.cuh>
#include <roundpipe/cuda/ops/cuda_ops.cuh>
#include <roundpipe/cuda/rounding.hpp>
#include <roundpipe/version.hpp>
