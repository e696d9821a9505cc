// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the end of an action lets go on: those that wait for it, and the next on its lane.

#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/graph_sequence.hpp>

#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// The waits and lanes of an unrolled sequence, seen from the action that goes first.
class Successors {
 public:
  explicit Successors(std::span<UnrolledAction const> actions)
      : begins_(actions.size() + 1), next_(actions.size()) {
    std::map<Lane, std::size_t> latest;
    for (std::size_t i = 0; i < actions.size(); ++i) {
      for (auto const wait : actions[i].waits) {
        ++begins_[wait + 1];
      }
      if (auto const [before, is_first] = latest.try_emplace(actions[i].lane, i); !is_first) {
        next_[std::exchange(before->second, i)] = i;
      }
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    waiting_.resize(begins_.back());
    auto ends = begins_;  // so far
    for (std::size_t i = 0; i < actions.size(); ++i) {
      for (auto const wait : actions[i].waits) {
        waiting_[ends[wait]++] = i;
      }
    }
  }

  /// The actions that wait for action \p i, in issue order.
  [[nodiscard]] std::span<std::size_t const> waiting_for(std::size_t i) const {
    return std::span(waiting_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }
  /// The next action on the lane of action \p i.
  [[nodiscard]] std::optional<std::size_t> next_on_lane(std::size_t i) const { return next_[i]; }

 private:
  std::vector<std::size_t> waiting_;              // by the action that they wait for
  std::vector<std::size_t> begins_;               // by action, in waiting_; then the end
  std::vector<std::optional<std::size_t>> next_;  // by action
};

}  // namespace roundpipe::detail
