// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How models change their rotary frequencies to stretch the context, as their
/// configurations describe it, and as operations take it.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>

namespace roundpipe::nn {

/// The `rope_scaling` (or `rope_parameters`) of a model's config.json; the members have the names
/// used there. With the frequency f = theta^(-2i/d) of pair i, whose vectors turn
/// r = original_max_position_embeddings f / (2 pi) times in the original context:
///
/// - `linear` divides all frequencies by `factor` (Chen et al. 2023, section 2.3).
/// - `llama3` keeps frequencies where r >= high_freq_factor, divides them where
///   r <= low_freq_factor, and blends in between, by r (as published with Llama 3.1).
/// - `yarn` keeps frequencies of pairs before the one with r = beta_fast, divides them from the one
///   with r = beta_slow on, and blends in between, by i. It multiplies queries and keys by the
///   attention factor (Peng et al. 2023, sections 3.2 to 3.4). With `truncate`, the two pairs are
///   rounded away from each other to whole ones.
struct RopeScaling {
  enum class Kind { none, linear, llama3, yarn };

  Kind kind = Kind::none;
  double factor = 1;                            ///< At least 1. Of all kinds.
  double original_max_position_embeddings = 0;  ///< Of llama3 and yarn, which need it.
  double low_freq_factor = 1;                   ///< Of llama3.
  double high_freq_factor = 4;                  ///< Of llama3.
  double beta_fast = 32;                        ///< Of yarn.
  double beta_slow = 1;                         ///< Of yarn.
  /// Of yarn. Default: 0.1 ln(factor) + 1 (Peng et al. 2023, eq. 22); with both `mscale` and
  /// `mscale_all_dim`, (0.1 mscale ln(factor) + 1) / (0.1 mscale_all_dim ln(factor) + 1).
  std::optional<double> attention_factor = {};
  double mscale = 0;          ///< Of yarn; 0: none.
  double mscale_all_dim = 0;  ///< Of yarn; 0: none.
  bool truncate = true;       ///< Of yarn.

  /// \throws Error (invalid_argument) that names the member, for values that describe no scaling.
  void check() const;
  /// What a rotation with base \p theta of heads of \p head_dim elements takes.
  /// \pre check() has passed; theta > 1 for yarn.
  [[nodiscard]] RotaryBlend blend(double theta, std::int64_t head_dim) const;

  friend bool operator==(RopeScaling const&, RopeScaling const&) = default;

 private:
  [[nodiscard]] double amplitude() const;
};

inline void RopeScaling::check() const {
  auto const demand = [](bool good, char const* member, double value, char const* wanted) {
    if (!good) {
      throw Error(Errc::invalid_argument,
                  "RopeScaling::" + std::string(member) + " is " + std::to_string(value) +
                      ", but must be " + wanted);
    }
  };
  auto const positive = [&](char const* member, double value) {
    demand(std::isfinite(value) && value > 0, member, value, "positive");
  };
  if (kind == Kind::none) {
    return;
  }
  demand(std::isfinite(factor) && factor >= 1, "factor", factor, "at least 1");
  if (kind == Kind::linear) {
    return;
  }
  positive("original_max_position_embeddings", original_max_position_embeddings);
  if (kind == Kind::llama3) {
    positive("low_freq_factor", low_freq_factor);
    demand(std::isfinite(high_freq_factor) && high_freq_factor > low_freq_factor,
           "high_freq_factor",
           high_freq_factor,
           "greater than low_freq_factor");
    return;
  }
  positive("beta_slow", beta_slow);
  demand(std::isfinite(beta_fast) && beta_fast >= beta_slow,
         "beta_fast",
         beta_fast,
         "no less than beta_slow");
  positive("attention_factor", attention_factor.value_or(1));
  demand(std::isfinite(mscale) && mscale >= 0, "mscale", mscale, "no less than 0");
  demand(std::isfinite(mscale_all_dim) && mscale_all_dim >= 0,
         "mscale_all_dim",
         mscale_all_dim,
         "no less than 0");
}

inline double RopeScaling::amplitude() const {
  auto const grown = [&](double scale) { return 0.1 * scale * std::log(factor) + 1; };
  if (attention_factor) {
    return *attention_factor;
  }
  return mscale > 0 && mscale_all_dim > 0 ? grown(mscale) / grown(mscale_all_dim) : grown(1);
}

inline RotaryBlend RopeScaling::blend(double theta, std::int64_t head_dim) const {
  RotaryBlend result;
  if (kind == Kind::none) {
    return result;
  }
  result.factor = factor;
  if (kind == Kind::linear) {
    result.kept = 0;
  } else if (kind == Kind::llama3) {
    auto const range = high_freq_factor - low_freq_factor;
    result.kept = -low_freq_factor / range;
    result.kept_by_frequency = original_max_position_embeddings / (2 * std::numbers::pi) / range;
  } else {
    auto const width = static_cast<double>(head_dim);
    auto const pair_that_turns = [&](double times) {
      return width * std::log(original_max_position_embeddings / (times * 2 * std::numbers::pi)) /
             (2 * std::log(theta));
    };
    auto first = pair_that_turns(beta_fast);
    auto last = pair_that_turns(beta_slow);
    if (truncate) {
      first = std::floor(first);
      last = std::ceil(last);
    }
    first = std::max(first, 0.0);
    last = std::min(last, width - 1);
    auto const range = first == last ? 0.001 : last - first;  // a step in place of a ramp
    result.kept = 1 + first / range;
    result.kept_by_pair = -1 / range;
    result.amplitude = amplitude();
  }
  return result;
}

}  // namespace roundpipe::nn
