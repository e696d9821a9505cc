// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Describes a model of whose layers only bytes are known.

#include <roundpipe/config.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/model/model_description.hpp>

#include <span>

namespace roundpipe {

/// A model of one bf16 parameter tensor and one bf16 boundary a layer, with the bytes given, as far
/// as bf16 numbers and alignment allow; what is 0 becomes a single number, so that every layer has
/// a block and hands something on. The last layer is a loss layer. Gradients are as large as
/// parameters here, whatever is given.
[[nodiscard]] ModelDescription describe_bytes(std::span<LayerBytes const> layers);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/byte_description.ipp>
#endif
