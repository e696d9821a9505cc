// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The losses of a training, step by step, as numbers and as a picture.

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace finetune {

/// The loss of data that a training has not seen, behind a step.
struct EvaluatedStep {
  std::int64_t step = 0;
  double loss = 0;
};

/// All losses of a training, those of the processes before this one, too.
struct LossCurve {
  std::vector<double> losses;  ///< Of step i + 1, with the weights that it began with.
  std::vector<EvaluatedStep> evaluations;

  /// For a snapshot.
  [[nodiscard]] nlohmann::json json() const;
  /// \throws roundpipe::Error (bad_file) when \p json, of the file \p file, is none that \ref json
  ///         has made of \p steps steps.
  [[nodiscard]] static LossCurve from(nlohmann::json const& json,
                                      std::int64_t steps,
                                      std::string const& file);

  /// "step,loss,evaluation_loss", a line a step, and one of step 0 if that was evaluated.
  [[nodiscard]] std::string csv() const;
  /// Both curves. Losses of steps are thin, with their mean over a fiftieth of all steps over them.
  [[nodiscard]] std::string svg(std::string const& title) const;
};

}  // namespace finetune
