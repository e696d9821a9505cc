// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief The shapes of models that can be named.

#include <roundpipe/nn/transformer_config.hpp>

#include <string>
#include <vector>

namespace train_throughput {

/// The names that \ref find_shape knows.
[[nodiscard]] std::vector<std::string> known_shapes();

/// The constants of the model called \p name, or those of the file of that name: a config.json as
/// checkpoints carry it (hidden_size, num_hidden_layers, ...). Types are left at their defaults.
/// \throws roundpipe::Error (invalid_argument) when there is neither, or the file lacks a key.
[[nodiscard]] roundpipe::nn::TransformerConfig find_shape(std::string const& name);

}  // namespace train_throughput
