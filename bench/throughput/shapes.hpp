// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The model shapes that have names.

#include <roundpipe/nn/transformer_config.hpp>

#include <string>
#include <vector>

namespace throughput {

/// The names that \ref find_shape knows.
[[nodiscard]] std::vector<std::string> known_shapes();

/// The constants of the model called \p name, or those in the file of that name: a config.json as
/// checkpoints have it (hidden_size, num_hidden_layers, ...). Types keep their defaults.
/// \throws roundpipe::Error (invalid_argument) if there is neither, or the file lacks a key.
[[nodiscard]] roundpipe::nn::TransformerConfig find_shape(std::string const& name);

}  // namespace throughput
