// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief The answers of a build without nvcc when the user asks for GPUs.

#include <roundpipe/core/error.hpp>

#include "run_cuda.hpp"

#ifndef ROUNDPIPE_EXAMPLES_HAVE_CUDA

namespace train_text {

std::int64_t cuda_devices(Options const& /*o*/) {
  throw roundpipe::Error(roundpipe::Errc::unsupported,
                         "--backend cuda: this build of train_text has no CUDA backend; "
                         "--backend host emulates devices on the CPU");
}

roundpipe::Timeline run_cuda(Options& o, Text const& /*text*/, Outcome& /*outcome*/) {
  static_cast<void>(cuda_devices(o));
  return {};
}

}  // namespace train_text

#endif
