// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/copy_queues.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// Tells which activation copies must go before a chunk.
class CopyQueues {
 public:
  explicit CopyQueues(std::span<UnrolledAction const> actions) : actions_(actions) {
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      auto const kind = actions_[i].lane.kind;
      if (kind == LaneKind::activation_up || kind == LaneKind::activation_down) {
        copies_[actions_[i].lane].push_back(i);
      }
    }
  }

  /// The last activation copy of the chunk's direction and device that is due before, or in, the
  /// window of the gated chunk \p c; \p c when there is none. The copies of a lane are in order, so
  /// this copy implies the earlier ones.
  [[nodiscard]] std::size_t last_due(std::size_t c) const {
    auto const up = actions_[c].lane.kind == LaneKind::parameter_up;
    auto const found = copies_.find(
        {up ? LaneKind::activation_up : LaneKind::activation_down, actions_[c].lane.device});
    return found == copies_.end() ? c : last_due(found->second, c);
  }

 private:
  /// The last of \p copies, which are in order, that is due before, or in, the window of chunk \p
  /// c; \p c when there is none. A slot's own parameters may go before its activations, because the
  /// slot needs both.
  [[nodiscard]] std::size_t last_due(std::vector<std::size_t> const& copies, std::size_t c) const {
    auto const& chunk = *actions_[c].action;
    auto const up = chunk.kind == ActionKind::upload_parameters;
    auto const begin = std::make_reverse_iterator(
        std::find_if(copies.begin(), copies.end(), [&](std::size_t copy) {
          return actions_[copy].graph > actions_[c].graph;
        }));
    auto const last = [&](auto&& is_due) {
      auto const found = std::find_if(begin, copies.rend(), is_due);
      return found == copies.rend() ? c : *found;
    };
    if (chunk.window_slot.valid()) {
      auto const window = chunk.micro_batch.index();
      auto const micro_batches = window + (up ? ahead(c) : 0);  // earlier activations go first
      return last([&](std::size_t copy) {
        auto const& action = *actions_[copy].action;
        return actions_[copy].graph == actions_[c].graph &&
               (action.slot < chunk.window_slot ||
                (action.slot == chunk.window_slot && action.micro_batch.index() < micro_batches));
      });
    }
    if (!up) {  // after the device's last slot of the call
      return last([&](std::size_t copy) {
        return actions_[copy].graph == actions_[c].graph &&
               actions_[copy].action->slot <= chunk.slot;
      });
    }
    // Before the device's first slot of the call: in the windows of its last slot in an earlier
    // call.
    auto const latest =
        last([&](std::size_t copy) { return actions_[copy].graph < actions_[c].graph; });
    if (latest == c) {
      return c;
    }
    auto const behind =
        micro_batches_of(c) - std::min(micro_batches_of(c), chunk.micro_batch.index() + ahead(c));
    return last([&](std::size_t copy) {
      auto const& action = *actions_[copy].action;
      auto const& end = *actions_[latest].action;
      return actions_[copy].graph < actions_[latest].graph ||
             (actions_[copy].graph == actions_[latest].graph &&
              (action.slot != end.slot ||
               action.micro_batch.index() + behind <= end.micro_batch.index()));
    });
  }

  /// The number of micro-batches whose activations a device of \p c's graph holds: one is going up,
  /// the others arrived earlier.
  [[nodiscard]] std::size_t ahead(std::size_t c) const {
    Ring const ring{BufferKind::activations_in, actions_[c].action->lane.device, 0};
    auto const& rings = actions_[c].source->rings;
    auto const found = rings.find(ring);
    return found == rings.end() ? 1 : found->second.count;
  }

  [[nodiscard]] std::size_t micro_batches_of(std::size_t c) const {
    std::size_t count = 1;
    for (auto const& action : actions_[c].source->actions) {
      if (action.lane.kind == LaneKind::compute) {
        count = std::max(count, action.micro_batch.index() + 1);
      }
    }
    return count;
  }

  std::span<UnrolledAction const> actions_;
  std::map<Lane, std::vector<std::size_t>> copies_;  // by lane, in order
};

}  // namespace detail

ROUNDPIPE_INLINE std::vector<std::pair<std::size_t, std::size_t>> overtaken_copies(
    std::span<UnrolledAction const> actions, SequenceOrder const& order) {
  detail::CopyQueues const queues(actions);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].action->gated) {
      auto const due = queues.last_due(i);
      if (due != i && !order.holds(due, i)) {
        pairs.emplace_back(due, i);
      }
    }
  }
  return pairs;
}

}  // namespace roundpipe
