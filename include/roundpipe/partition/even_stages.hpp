// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts layers into a given number of stages as evenly as can be.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/partition/fewest_stages.hpp>
#include <roundpipe/partition/stage_ticks.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe::detail {

/// Cuts the first \p count layers into the fewest stages that take no longer than \p t_max, in
/// execution order, as evenly as can be: with the least sum of squared times. Of equals, forward
/// stages become longer and backward stages shorter in execution order, for the sake of fill and
/// drain. The latest search of \p fewest must have been for \p t_max.
///
/// The k-th stage of such a cut, in layer order, ends where k stages are the fewest that reach. So
/// each place can end one stage only, and the search takes O(L) times a stage's layers steps.
[[nodiscard]] std::vector<LayerRange> even_stages(FewestStages& fewest,
                                                  std::size_t count,
                                                  Ticks t_max);

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/partition/impl/even_stages.ipp>
#endif
