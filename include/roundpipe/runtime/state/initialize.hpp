// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The first values of parameters: a function of the seed and the parameter's place alone.

#include <roundpipe/config.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe {

/// Fills \p values with the first values of tensor \p tensor of block \p block: elements from
/// number \p first on.
void initialize(ParameterSpec const& spec,
                std::uint64_t seed,
                std::size_t block,
                std::size_t tensor,
                HostSpan<float> values,
                std::size_t first = 0);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/initialize.ipp>
#endif
