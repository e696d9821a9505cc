// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The answers of a build without nvcc when the user asks for a GPU.

#include <roundpipe/core/error.hpp>

#include "run_cuda.hpp"

#ifndef ROUNDPIPE_EXAMPLES_HAVE_CUDA

namespace generate {

bool has_cuda() noexcept {
  return false;
}

std::vector<std::int32_t> run_cuda(Options const& /*o*/, Model const& /*model*/) {
  throw roundpipe::Error(roundpipe::Errc::unsupported,
                         "--backend cuda: this build of generate has no CUDA backend; "
                         "--backend host computes on the CPU");
}

}  // namespace generate

#endif
