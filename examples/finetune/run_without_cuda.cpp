// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The answers of a build without nvcc when the user asks for GPUs.

#include <roundpipe/core/error.hpp>

#include "run_cuda.hpp"

#ifndef ROUNDPIPE_EXAMPLES_HAVE_CUDA

namespace finetune {

std::size_t cuda_devices() noexcept {
  return 0;
}

roundpipe::Timeline run_cuda(Options const& /*o*/, Job& /*job*/, Outcome& /*outcome*/) {
  throw roundpipe::Error(roundpipe::Errc::unsupported,
                         "--backend cuda: this build of finetune has no CUDA backend; "
                         "--backend host emulates devices on the CPU");
}

}  // namespace finetune

#endif
