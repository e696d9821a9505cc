// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What actions look like in pictures of timelines.

#include <roundpipe/graph/action_graph.hpp>

#include <string_view>

namespace roundpipe::detail {

/// Colours as in SVG, and words. Hues stay apart in all common forms of colour blindness (they are
/// near those of Okabe and Ito, "Color Universal Design", 2008); lightnesses are far enough apart
/// (CIE L* 92, 76, 33 and, of the two halves of a backward, to be 48 and 62) to tell kinds by them
/// alone. Copies are grey.
struct ActionLook {
  std::string_view name;    ///< In the legend; kinds of one name look alike.
  std::string_view letter;  ///< Tells kinds of compute apart in labels.
  std::string_view fill;
  std::string_view ink;  ///< Of text on it.

  friend bool operator==(ActionLook const&, ActionLook const&) = default;
};

/// The one place where a kind of action gets its look.
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
      return activation_copy;
    case ActionKind::upload_parameters:
    case ActionKind::download_gradients:
      return chunk_copy;
    case ActionKind::accumulate_gradient:
    case ActionKind::gradient_norm:
    case ActionKind::optimizer_step:
    case ActionKind::copy_parameters:
      return host;
  }
  return host;
}

}  // namespace roundpipe::detail
