// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Generating on a GPU: the part of generate for nvcc, where there is one.

#include <cstdint>
#include <vector>

#include "model.hpp"
#include "options.hpp"

namespace generate {

/// Whether there is a GPU. False also in a build without CUDA, and without a driver.
[[nodiscard]] bool has_cuda() noexcept;

/// The prompt and what comes after it.
/// \throws roundpipe::Error (unsupported) in a build without CUDA; and as the backend and the
///         pipeline do.
[[nodiscard]] std::vector<std::int32_t> run_cuda(Options const& o, Model const& model);

}  // namespace generate
