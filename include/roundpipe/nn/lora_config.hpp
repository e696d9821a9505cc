// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The constants of low-rank adapters (LoRA).

#include <roundpipe/core/error.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe::nn {

/// Low-rank adapters beside the linear maps of a transformer (Hu et al. 2021, section 4.1):
///
///     y = W x + scale B A dropout(x)     A [rank, in], B [out, rank]
///
/// scale is alpha / rank, or alpha / sqrt(rank) (rsLoRA, Kalajdzievski 2023, theorem 3.2). With
/// adapters, all other parameters of the model are frozen. The matrices are parameters behind those
/// of their layer: "1.self_attn.q_proj.lora_A.weight" and "1.self_attn.q_proj.lora_B.weight" of
/// "1.self_attn.q_proj.weight". A begins with normal numbers of the deviation 1 / sqrt(3 in), which
/// is that of peft's uniform ones (`kaiming_uniform_(a=sqrt(5))`), and B with zeros, so training
/// begins at the base model.
struct LoraConfig {
  std::int64_t rank = 0;    ///< Of all adapters; 0: no adapters.
  double alpha = 0;         ///< Default, selected by 0: rank.
  double dropout = 0;       ///< Rate in [0, 1), on the x of B A x. Each adapter draws its own.
  bool use_rslora = false;  ///< Divides alpha by the root of the rank.
  /// Patterns (\ref matches_name) of the linear maps that get an adapter. Maps have the names of
  /// their weights, without ".weight": "1.self_attn.q_proj", "1.mlp.down_proj" and, where it is not
  /// tied, that of the head, "9.lm_head". By default all maps of blocks.
  std::vector<std::string> targets{"*_proj"};

  /// What the product of both matrices is multiplied by. Precondition: resolved.
  [[nodiscard]] double scale() const {
    auto const n = static_cast<double>(rank);
    return alpha / (use_rslora ? std::sqrt(n) : n);
  }

  /// These constants with the default filled in.
  /// \throws Error (invalid_argument) for constants that describe no adapters.
  [[nodiscard]] LoraConfig resolved() const {
    auto config = *this;
    if (rank < 0 || rank > std::numeric_limits<std::int32_t>::max()) {
      throw Error(Errc::invalid_argument,
                  "LoraConfig::rank is " + std::to_string(rank) +
                      ", but must not be negative, and fit 32 bits");
    }
    require(std::isfinite(alpha) && alpha >= 0,
            Errc::invalid_argument,
            "LoraConfig::alpha must be positive, or 0 for the rank");
    if (alpha == 0) {
      config.alpha = static_cast<double>(rank);
    }
    require(dropout >= 0 && dropout < 1,
            Errc::invalid_argument,
            "LoraConfig::dropout must be in [0, 1)");
    require(rank == 0 || !targets.empty(),
            Errc::invalid_argument,
            "LoraConfig::targets must name the maps that get an adapter");
    return config;
  }

  friend bool operator==(LoraConfig const&, LoraConfig const&) = default;
};

/// Whether the parameter \p name is a matrix of an adapter.
[[nodiscard]] inline bool is_lora_parameter(std::string_view name) {
  return name.ends_with(".lora_A.weight") || name.ends_with(".lora_B.weight");
}

}  // namespace roundpipe::nn
