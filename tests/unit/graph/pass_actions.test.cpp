// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/graph/pass_actions.hpp>

#include <doctest/doctest.h>

namespace pass_actions_test {

using namespace roundpipe;

TEST_CASE("an action runs the pass that it was made for") {
  for (auto const kind :
       {StageKind::forward, StageKind::fused, StageKind::backward, StageKind::evaluate}) {
    for (bool const offloads : {false, true}) {
      CAPTURE(static_cast<int>(kind));
      CAPTURE(offloads);
      for (auto const& pass : layer_passes(kind, offloads)) {
        CHECK(pass_kind(action_kind(pass), kind == StageKind::backward) == pass.kind);
      }
    }
  }
  for (auto const& half : {input_gradient_pass, weight_gradient_pass}) {
    CHECK(pass_kind(action_kind(half), true) == half.kind);
  }
}

TEST_CASE("every forward that saves is the action of a saving forward") {
  for (auto const& pass : {saving_forward_pass, offloading_forward_pass, recompute_pass}) {
    CHECK(action_kind(pass) == ActionKind::recompute);
  }
  CHECK(action_kind(forward_pass) == ActionKind::forward);
}

}  // namespace pass_actions_test
