// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/graph/pass_actions.hpp>

#include <doctest/doctest.h>

namespace pass_actions_test {

using namespace roundpipe;

TEST_CASE("an action runs the pass that it was made for") {
  for (auto const kind :
       {StageKind::forward, StageKind::fused, StageKind::backward, StageKind::evaluate}) {
    CAPTURE(static_cast<int>(kind));
    for (auto const& pass : layer_passes(kind)) {
      CHECK(pass_kind(action_kind(pass), kind == StageKind::backward) == pass.kind);
    }
  }
  for (auto const& half : {input_gradient_pass, weight_gradient_pass}) {
    CHECK(pass_kind(action_kind(half), true) == half.kind);
  }
}

TEST_CASE("every forward that saves is the action of a saving forward") {
  for (auto const& pass : {saving_forward_pass, recompute_pass}) {
    CHECK(action_kind(pass) == ActionKind::recompute);
  }
  WorkingSet set({{0, 256}}, 1);
  set.set_level(0, 0, 1);
  auto const kept = passes_over(StageKind::forward, {0, 1}, set, 0);
  CHECK(action_kind(kept.front()) == ActionKind::recompute);
  CHECK(action_kind(forward_pass) == ActionKind::forward);
}

}  // namespace pass_actions_test
