// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The look of actions in pictures of timelines.

#include <roundpipe/graph/action_graph.hpp>

#include <string_view>

namespace roundpipe::detail {

/// SVG colours, and words. The hues stay distinct in all common forms of colour blindness (they are
/// close to those of Okabe and Ito, "Color Universal Design", 2008). The lightnesses (CIE L* 92,
/// 76, 33, and 48 and 62 for the two halves of a backward) differ enough to tell kinds apart
/// without hue. Copies are grey.
struct ActionLook {
  std::string_view name;    ///< In the legend; kinds with the same name look alike.
  std::string_view letter;  ///< Distinguishes kinds of compute in labels.
  std::string_view fill;
  std::string_view ink;  ///< Of text on \c fill.

  friend bool operator==(ActionLook const&, ActionLook const&) = default;
};

/// The only place that defines the look of a kind of action.
[[nodiscard]] constexpr ActionLook look_of(ActionKind kind) noexcept {
  constexpr std::string_view dark = "#000000";
  constexpr std::string_view light = "#ffffff";
  constexpr ActionLook activation_copy{"copy of an activation", "", "#a6a6a6", dark};
  constexpr ActionLook chunk_copy{"copy of a chunk", "", "#595959", light};
  constexpr ActionLook host{"on the host", "", "#d9d9d9", dark};
  switch (kind) {
    case ActionKind::forward:
      return {"forward", "F", "#7cc4f0", dark};
    case ActionKind::recompute:
      return {"recompute", "R", "#f5e98a", dark};
    case ActionKind::backward:
      return {"backward", "B", "#00518a", light};
    case ActionKind::input_gradient:
      return {"input gradient", "I", "#bf4f00", light};
    case ActionKind::weight_gradient:
      return {"weight gradient", "W", "#2ba884", dark};
    case ActionKind::upload_activation:
    case ActionKind::upload_gradient:
    case ActionKind::download_activation:
    case ActionKind::send_boundary:
    case ActionKind::upload_save:
    case ActionKind::download_save:
      return activation_copy;
    case ActionKind::upload_parameters:
    case ActionKind::download_gradients:
      return chunk_copy;
    case ActionKind::accumulate_gradient:
    case ActionKind::reduce_gradient:
    case ActionKind::gradient_norm:
    case ActionKind::optimizer_step:
    case ActionKind::copy_parameters:
    case ActionKind::gather_weights:
      return host;
  }
  return host;
}

}  // namespace roundpipe::detail
