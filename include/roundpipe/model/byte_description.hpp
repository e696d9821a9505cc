// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Describes a model from the bytes of its layers alone.

#include <roundpipe/config.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/model/model_description.hpp>

#include <span>

namespace roundpipe {

/// A model of layers with one bf16 parameter tensor and one bf16 boundary each, as large as \p
/// layers says, up to the size of a bf16 number and alignment. 0 bytes become one number, so that
/// every layer has a block and hands something on. The last layer is a loss layer. Gradients are as
/// large as parameters; the model ignores `gradient_bytes`.
[[nodiscard]] ModelDescription describe_bytes(std::span<LayerBytes const> layers);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/byte_description.ipp>
#endif
