// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Explains in a sentence when a round is too small to hide its uploads.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/estimate/model_shape.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace roundpipe {

/// None when the forward of a layer of \p shape hides the upload of its parameters and checkpoints.
/// Otherwise a sentence with both times and the smallest sufficient number of sequences.
/// A round sends \p micro_batches_per_round times \p micro_batch through a slot and uploads the
/// slot's parameters once. The compute of a slot is therefore that many times a micro-batch's, and
/// the batch in question is the round's: M_R times the rows of a micro-batch.
/// \throws Error (invalid_argument) for an invalid shape, extents or micro-batches below 1, or when
/// \p device does not know its peak or its upload rate.
[[nodiscard]] std::optional<std::string> transfer_warning(ModelShape const& shape,
                                                          DeviceProperties const& device,
                                                          BatchShape micro_batch,
                                                          std::int64_t micro_batches_per_round);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/estimate/impl/transfer_warning.ipp>
#endif
