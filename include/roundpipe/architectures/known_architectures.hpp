// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The list of all architectures.

#include <roundpipe/architectures/architecture.hpp>
#include <roundpipe/architectures/llama.hpp>
#include <roundpipe/architectures/mistral.hpp>
#include <roundpipe/architectures/qwen2.hpp>
#include <roundpipe/architectures/qwen3.hpp>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace roundpipe {

namespace architectures {

inline constexpr Architecture all[] = {llama, mistral, qwen2, qwen3};

}  // namespace architectures

/// All architectures whose checkpoints the library reads.
[[nodiscard]] inline std::span<architectures::Architecture const> known_architectures() noexcept {
  return architectures::all;
}

/// The architecture of \p model_type. Null: not known.
[[nodiscard]] inline architectures::Architecture const* find_architecture(
    std::string_view model_type) noexcept {
  auto const known = known_architectures();
  auto const found = std::find_if(
      known.begin(), known.end(), [&](auto const& a) { return a.model_type == model_type; });
  return found == known.end() ? nullptr : &*found;
}

/// Their names, for messages: "llama, mistral, ...".
[[nodiscard]] inline std::string architecture_names() {
  std::string names;
  for (auto const& architecture : known_architectures()) {
    names.append(names.empty() ? "" : ", ").append(architecture.model_type);
  }
  return names;
}

}  // namespace roundpipe
