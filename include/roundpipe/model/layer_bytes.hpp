// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What one layer takes of memory and links, as plain figures.

#include <roundpipe/core/bytes.hpp>

namespace roundpipe {

/// The bytes of one layer. Those of activations are for one micro-batch at capacity.
struct LayerBytes {
  Bytes parameter_bytes = 0;  ///< Of the master copy: what is uploaded.
  Bytes gradient_bytes = 0;   ///< Of the parameters' gradients as they are downloaded.
  Bytes boundary_bytes = 0;   ///< What the layer hands to the next one; 0: it is the last.
  Bytes saved_bytes = 0;      ///< From the saving forward to the backward, besides its input.
  Bytes workspace_bytes = 0;  ///< During one call of forward or backward, whichever needs more.

  friend constexpr bool operator==(LayerBytes const&, LayerBytes const&) noexcept = default;
};

}  // namespace roundpipe
