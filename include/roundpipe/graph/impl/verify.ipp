// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/copy_queues.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>
#include <roundpipe/graph/verify.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE bool overlaps(Ring const& ring, Action const& a, Action const& b) {
  auto const shares_use = [&] {
    auto const touches = [](Action const& action, BlockUseId use) {
      return std::find(action.uses.begin(), action.uses.end(), use) != action.uses.end() ||
             std::any_of(action.pieces.begin(), action.pieces.end(), [&](BlockPiece const& piece) {
               return piece.use == use;
             });
    };
    return std::any_of(
               a.uses.begin(), a.uses.end(), [&](BlockUseId use) { return touches(b, use); }) ||
           std::any_of(a.pieces.begin(), a.pieces.end(), [&](BlockPiece const& piece) {
             return touches(b, piece.use);
           });
  };
  auto const are_chunks = !a.pieces.empty() && !b.pieces.empty();
  switch (ring.kind) {
    case BufferKind::parameters:
    case BufferKind::gradients:
      // Chunks of one slot hold different pieces; what stays is one block.
      return !are_chunks && (resident_block(ring).valid() || shares_use());
    case BufferKind::activations_in: {
      // Inputs and the output gradient have separate memory; recomputation needs only the inputs.
      auto const is_gradient = [](Action const& x) {
        return x.kind == ActionKind::upload_gradient;
      };
      auto const needs_none = [](Action const& x) {
        return x.kind == ActionKind::upload_activation || x.kind == ActionKind::recompute;
      };
      return !(is_gradient(a) && needs_none(b)) && !(is_gradient(b) && needs_none(a));
    }
    case BufferKind::activations_out: {
      // What each layer makes has memory of its own; a boundary goes while others are made.
      auto const are_apart = [](Action const& send, Action const& pass) {
        return send.kind == ActionKind::send_boundary && pass.lane.kind == LaneKind::compute &&
               send.layer != pass.layer;
      };
      return !are_apart(a, b) && !are_apart(b, a);
    }
    case BufferKind::landing:
      return !are_chunks;
    default:
      return true;
  }
}

class Verifier {
 public:
  Verifier(std::span<UnrolledAction const> actions, SequenceOrder const& order, std::size_t most)
      : actions_(actions), order_(order), most_(most) {}

  [[nodiscard]] std::vector<Violation> run() && {
    if (!order_.deadlock().empty()) {
      report_deadlock();
      return std::move(violations_);
    }
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      for (auto const& access : actions_[i].accesses) {
        if (access.location.ring.kind <= BufferKind::norm) {  // others belong to the controller
          check(i, access);
        }
      }
    }
    for (auto const& [copy, chunk] : overtaken_copies(actions_, order_)) {
      report(Rule::queueing, copy, chunk, "may queue behind");
    }
    return std::move(violations_);
  }

 private:
  struct User {
    std::size_t action = 0;
    Access access;
  };
  /// The known users of a location, of its current content and of the content before.
  struct State {
    bool is_used = false;
    std::uint64_t content = 0;
    std::vector<User> users;   // of the current content
    std::vector<User> former;  // of the content before
  };

  [[nodiscard]] static bool is_ring(BufferKind kind) noexcept { return kind < BufferKind::master; }

  void check(std::size_t i, Access const& access) {
    auto const kind = access.location.ring.kind;
    auto& state = states_[access.location];
    auto const begins_content =
        !state.is_used || (access.writes && state.content != access.content);
    if (!access.writes && !state.is_used && is_ring(kind)) {
      add({Rule::data,
           i,
           i,
           std::string(name_of(Rule::data)) + ": " + to_string(actions_[i]) +
               " reads a buffer that nothing has written"});
    }
    if (!access.writes && state.is_used && state.content != access.content) {
      report_content(i, state, access);  // a read of content that is gone, or not there yet
    }
    if (kind == BufferKind::landing && !access.writes) {
      check_summed_once(i, state);
    }
    if (begins_content) {
      state.former = std::exchange(state.users, {});
      state.content = access.content;
      state.is_used = true;
    }
    auto const& action = *actions_[i].action;
    if (access.writes) {
      for (auto const& user : state.former) {
        // All users of a ring entry's content share the entry; other buffers keep their layout.
        if (is_ring(kind) ||
            overlaps(access.location.ring, *actions_[user.action].action, action)) {
          check_pair(user, {i, access}, true);
        }
      }
    }
    for (auto const& user : state.users) {
      if ((access.writes || user.access.writes) &&
          overlaps(access.location.ring, *actions_[user.action].action, action)) {
        check_pair(user, {i, access}, false);
      }
    }
    state.users.push_back({i, access});
  }

  /// Reports that action \p i adds a gradient to its sum that another has added already.
  void check_summed_once(std::size_t i, State const& state) {
    for (auto const& user : state.users) {
      if (!user.access.writes) {
        report(Rule::data, user.action, i, "adds what is added again by");
      }
    }
  }

  void check_pair(User const& first, User const& second, bool reused) {
    auto const kind = first.access.location.ring.kind;
    if (first.action == second.action && reused && is_ring(kind)) {
      add({Rule::buffer_reuse,
           first.action,
           first.action,
           std::string(name_of(Rule::buffer_reuse)) + ": " + to_string(actions_[first.action]) +
               " overwrites an entry that it reads"});
      return;
    }
    if (first.action == second.action || order_.same_lane(first.action, second.action) ||
        order_.holds(first.action, second.action)) {
      return;
    }
    report(rule_of(kind, first, second, reused), first.action, second.action, "may come after");
  }

  /// The rule that orders two users of a location.
  [[nodiscard]] Rule rule_of(BufferKind kind,
                             User const& first,
                             User const& second,
                             bool reused) const {
    auto const is = [&](User const& user, ActionKind action) {
      return actions_[user.action].action->kind == action;
    };
    auto const is_either = [&](ActionKind action) {
      return is(first, action) || is(second, action);
    };
    switch (kind) {
      case BufferKind::master:
      case BufferKind::gathered:
        return is(first, ActionKind::upload_parameters)    ? Rule::upload_before_copy
               : is(second, ActionKind::upload_parameters) ? Rule::copy_before_upload
               : is_either(ActionKind::gather_weights)     ? Rule::share_before_gather
                                                           : Rule::copy_between_steps;
      case BufferKind::optimizer_copy:
        return Rule::copy_between_steps;
      case BufferKind::gradient:
        return reused                                         ? Rule::reader_before_gradient
               : first.access.writes && !second.access.writes ? Rule::gradient_before_reader
                                                              : Rule::data;
      default:
        return reused ? Rule::buffer_reuse : Rule::data;
    }
  }

  /// Reports a read whose content differs from the last write before it in issue order.
  void report_content(std::size_t i, State const& state, Access const& access) {
    auto const& last = state.users.back();
    auto const& first = state.users.front();
    switch (access.location.ring.kind) {
      case BufferKind::master:
      case BufferKind::gathered:
        // It must see older or newer weights than there are.
        return report(
            access.content < state.content ? Rule::upload_before_copy : Rule::copy_before_upload,
            first.action,
            i,
            "leaves the weights of another step than required by");
      case BufferKind::optimizer_copy:
        return report(
            Rule::copy_between_steps, last.action, i, "leaves the result of another step to");
      case BufferKind::gradient:
        return report(Rule::gradient_before_reader,
                      last.action,
                      i,
                      "leaves the gradient of another iteration to");
      default:
        return report(Rule::data, last.action, i, "uses other content than required by");
    }
  }

  void report_deadlock() {
    auto const& circle = order_.deadlock();
    std::string text = std::string(name_of(Rule::deadlock)) + ": ";
    for (auto const i : circle) {
      text += to_string(actions_[i]) + " waits for ";
    }
    text += "the first of them";
    add({Rule::deadlock, circle.front(), circle.back(), std::move(text)});
  }

  void report(Rule rule, std::size_t first, std::size_t second, char const* what) {
    add({rule,
         first,
         second,
         std::string(name_of(rule)) + ": " + to_string(actions_[first]) + " " + what + " " +
             to_string(actions_[second])});
  }

  void add(Violation violation) {
    if (violations_.size() < most_ && (violations_.empty() || violations_.back() != violation)) {
      violations_.push_back(std::move(violation));
    }
  }

  std::span<UnrolledAction const> actions_;
  SequenceOrder const& order_;
  std::size_t most_;
  std::map<Location, State> states_;
  std::vector<Violation> violations_;
};

}  // namespace detail

ROUNDPIPE_INLINE std::vector<Violation> verify(std::span<UnrolledAction const> actions,
                                               SequenceOrder const& order,
                                               std::size_t most) {
  return detail::Verifier(actions, order, most).run();
}

ROUNDPIPE_INLINE std::vector<Violation> verify(GraphSequence const& sequence, std::size_t most) {
  auto const actions = sequence.unroll();
  return verify(actions, SequenceOrder(actions), most);
}

ROUNDPIPE_INLINE std::vector<Violation> verify(ActionGraph const& graph) {
  return verify(GraphSequence(std::max<std::size_t>(1, graph.devices)).add(graph).add(graph));
}

ROUNDPIPE_INLINE void require_safe(GraphSequence const& sequence) {
  auto const violations = verify(sequence, 4);
  if (violations.empty()) {
    return;
  }
  std::string text = "the plan's graph can go wrong";
  for (auto const& violation : violations) {
    text += "; " + violation.text;
  }
  throw Error(Errc::unsafe_graph, text);
}

}  // namespace roundpipe
