// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How a language model head divides its workspace.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/carve.hpp>
#include <roundpipe/nn/transformer_config.hpp>

#include <algorithm>

namespace roundpipe::nn::detail {

/// The workspace of either pass of a head.
template <Ops O>
struct HeadMemory {
  /// \param adapts says that the head has a low-rank adapter.
  HeadMemory(TensorCarver& work,
             TransformerConfig const& c,
             BatchShape shape,
             bool backward,
             bool adapts) {
    auto const positions = shape.positions();
    auto const chunk = std::min(positions, c.loss_chunk);
    auto const wide = accumulation_type(c.storage);
    scratch = take_scratch(
        work, std::max(O::linear_scratch_bytes(), O::norm_scratch_bytes(positions, c.hidden)));
    normed = work.take({positions, c.hidden}, c.storage);
    logits = work.take({chunk, c.vocabulary}, wide);
    losses = work.take({positions}, wide);
    lse = work.take({positions}, wide);
    if (backward) {
      dlogits = c.storage == wide ? logits : work.take({chunk, c.vocabulary}, c.storage);
    }
    if (adapts) {
      low = work.take({chunk, c.lora.rank}, c.storage);
      if (c.lora.dropout > 0) {
        dropped = work.take({positions, c.hidden}, c.storage);
      }
    }
  }

  DeviceBytes scratch;
  DeviceTensor normed;
  DeviceTensor logits;   // of one chunk
  DeviceTensor dlogits;  // of one chunk
  DeviceTensor losses;   // of all positions
  DeviceTensor lse;
  DeviceTensor low;      // the adapter's rank-wide product, of one chunk
  DeviceTensor dropped;  // what the adapter sees of `normed` where it has a dropout
};

}  // namespace roundpipe::nn::detail
