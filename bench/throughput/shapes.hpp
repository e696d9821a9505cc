// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The model shapes that have names.

#include <roundpipe/nn/transformer_config.hpp>

#include <string>

namespace throughput {

/// The constants of the model called \p name (\ref examples::named_shapes), or those in the file of
/// that name, a checkpoint's config.json. Types keep their defaults.
/// \throws roundpipe::Error (invalid_argument) if there is neither, and as \ref
///         roundpipe::read_model_config.
[[nodiscard]] roundpipe::nn::TransformerConfig find_shape(std::string const& name);

}  // namespace throughput
