// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Links as a training has found them.

#include <roundpipe/config.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/simulate/link_model.hpp>

namespace roundpipe {

/// \p link, its rates and those of host memory changed so that copies take what they took in
/// \p measured. \p simulated is the same training, simulated with \p link. In each direction the
/// rates change by one factor: that of the bytes that devices copied per second in which they
/// copied any. A direction without copies in either timeline keeps its rates.
[[nodiscard]] LinkModel fit_link(LinkModel link,
                                 Timeline const& measured,
                                 Timeline const& simulated);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/link_fit.ipp>
#endif
