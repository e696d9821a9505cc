// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/recompute_waits.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE void wait_for_gradients(ActionGraph& graph) {
  std::map<std::pair<SlotId, MicroBatchId>, ActionId> gradients;
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    auto& action = graph.actions[i];
    if (action.kind == ActionKind::upload_gradient) {
      gradients[{action.slot, action.micro_batch}] = ActionId(i);
    } else if (action.kind == ActionKind::recompute) {
      if (auto const found = gradients.find({action.slot, action.micro_batch});
          found != gradients.end()) {
        action.waits.push_back(found->second);
        std::sort(action.waits.begin(), action.waits.end());
        gradients.erase(found);  // later layers of the stage come after this one
      }
    }
  }
}

}  // namespace roundpipe
