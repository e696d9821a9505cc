// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which action of a graph is over before which other begins, by waits and lanes alone.

#include <roundpipe/plan/action_graph.hpp>

#include <cstddef>
#include <map>
#include <vector>

namespace roundpipe::test {

/// The happens-before relation of one graph.
class GraphOrder {
 public:
  explicit GraphOrder(ActionGraph const& graph) : before_(graph.actions.size()) {
    std::map<Lane, std::size_t> latest;
    for (std::size_t i = 0; i < graph.actions.size(); ++i) {
      before_[i].resize(i, false);
      auto const follow = [&](std::size_t earlier) {
        before_[i][earlier] = true;
        for (std::size_t j = 0; j < earlier; ++j) {
          before_[i][j] = before_[i][j] || before_[earlier][j];
        }
      };
      auto const& action = graph.actions[i];
      for (auto const wait : action.waits) {
        follow(wait.index());
      }
      if (auto const found = latest.find(action.lane); found != latest.end()) {
        follow(found->second);
      }
      latest[action.lane] = i;
    }
  }

  /// Whether \p a has ended when \p b begins.
  [[nodiscard]] bool holds(ActionId a, ActionId b) const {
    return a < b && before_[b.index()][a.index()];
  }

 private:
  std::vector<std::vector<bool>> before_;  // by later action, by earlier one
};

}  // namespace roundpipe::test
