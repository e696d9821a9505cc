// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Makes recomputation wait for gradients, as frameworks with on-demand recomputation do.

#include <roundpipe/config.hpp>
#include <roundpipe/graph/action_graph.hpp>

namespace roundpipe {

/// Makes the recomputation of each micro-batch in \p graph, from \ref build_streamed_graph, wait
/// until the gradient of its stage's output is on the device.
void wait_for_gradients(ActionGraph& graph);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/recompute_waits.ipp>
#endif
