// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The config.json of a model, as transformers and this library read it.

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/core/dtype.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace make_tiny_checkpoint {

/// What transformers calls \p type.
[[nodiscard]] std::string torch_name(roundpipe::DType type);

/// The fields of \p config that its architecture has.
/// \throws roundpipe::Error (invalid_argument) for an architecture that is not known, which lists
///         the known ones, and for a window or biases of one that has none.
[[nodiscard]] nlohmann::ordered_json config_json(roundpipe::ModelConfig const& config);

}  // namespace make_tiny_checkpoint
