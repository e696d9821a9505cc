// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Drops ordering edges from graphs and decides by brute force what each edge is worth.

#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>
#include <roundpipe/graph/verify.hpp>
#include <support/training_graphs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// The list of waits that holds an edge.
enum class EdgeList : std::uint8_t { waits, block_waits, ring_waits, lane_waits };

/// One entry of one list of one action.
struct Edge {
  GraphRole graph = GraphRole::call;
  std::size_t action = 0;
  EdgeList list = EdgeList::waits;
  std::size_t index = 0;
};

/// All edges of \p graph.
inline std::vector<Edge> edges_of(ActionGraph const& graph) {
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < graph.actions.size(); ++i) {
    auto const& action = graph.actions[i];
    auto const add = [&](EdgeList list, std::size_t count) {
      for (std::size_t k = 0; k < count; ++k) {
        edges.push_back({graph.role, i, list, k});
      }
    };
    add(EdgeList::waits, action.waits.size());
    add(EdgeList::block_waits, action.block_waits.size());
    add(EdgeList::ring_waits, action.ring_waits.size());
    add(EdgeList::lane_waits, action.lane_waits.size());
  }
  return edges;
}

/// Drops \p edge from \p graph. To drop several edges of one action, begin with the highest index.
inline void drop(ActionGraph& graph, Edge const& edge) {
  auto const erase = [&](auto& list) {
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(edge.index));
  };
  auto& action = graph.actions[edge.action];
  switch (edge.list) {
    case EdgeList::waits:
      return erase(action.waits);
    case EdgeList::block_waits:
      return erase(action.block_waits);
    case EdgeList::ring_waits:
      return erase(action.ring_waits);
    case EdgeList::lane_waits:
      return erase(action.lane_waits);
  }
}

/// The meaning of an edge.
struct EdgeKind {
  std::string name;      ///< "download gradients waits for optimizer step of its block"
  std::set<Rule> rules;  ///< The rules that the edge may serve.
  /// The edges that go together if a rule is dropped: of the protocol's edges, all of the rule.
  std::string group;
};

inline EdgeKind kind_of(TrainingGraphs const& graphs, Edge const& edge) {
  auto const& graph = graphs.of(edge.graph);
  auto const& action = graph.actions[edge.action];
  auto const is = [&](ActionKind kind) { return action.kind == kind; };
  EdgeKind kind{std::string(name_of(action.kind)) + " waits for ", {}, {}};
  switch (edge.list) {
    case EdgeList::waits: {
      auto const& target = graph.actions[action.waits[edge.index].index()];
      kind.name += name_of(target.kind);
      if (is(ActionKind::optimizer_step)) {  // for the P copy
        kind.rules = {Rule::copy_between_steps};
      } else if (is(ActionKind::gather_weights)) {  // for what writes the own shard
        kind.rules = {Rule::share_before_gather};
      } else if (action.gated) {  // a chunk's gate may also free or fill its buffer
        kind.rules = {Rule::queueing};
        if (target.lane.kind == LaneKind::compute) {
          kind.rules.insert({Rule::data, Rule::buffer_reuse});
        } else if (target.kind == ActionKind::accumulate_gradient ||
                   target.kind == ActionKind::reduce_gradient) {
          kind.rules = {Rule::buffer_reuse};
        }
      } else {
        kind.rules = {Rule::data, Rule::buffer_reuse};
      }
      break;
    }
    case EdgeList::block_waits: {
      auto const& event = action.block_waits[edge.index];
      constexpr char const* names[] = {"upload", "gradient write", "optimizer step", "P copy"};
      kind.name += names[static_cast<std::size_t>(event.kind)];
      auto const blocks = [&] {  // of the buffers of the action
        std::set<std::size_t> result;
        for (auto const* list : {&action.reads, &action.writes}) {
          for (auto const& buffer : *list) {
            if (buffer.ring.kind == BufferKind::master ||
                buffer.ring.kind == BufferKind::gradient) {
              result.insert(buffer.ring.index);
            }
          }
        }
        return result;
      }();
      kind.name += blocks.contains(event.block.index()) ? " of its block" : " of another block";
      switch (event.kind) {
        case BlockEventKind::upload:
          kind.rules = {Rule::upload_before_copy};
          break;
        case BlockEventKind::gradient_write:
          kind.rules = {Rule::gradient_before_reader};
          break;
        case BlockEventKind::optimizer_step:
          kind.rules = {is(ActionKind::copy_parameters) ? Rule::copy_between_steps
                                                        : Rule::reader_before_gradient};
          break;
        case BlockEventKind::parameter_copy:
          kind.rules = {is(ActionKind::optimizer_step)    ? Rule::copy_between_steps
                        : is(ActionKind::copy_parameters) ? Rule::share_before_gather
                                                          : Rule::copy_before_upload};
          break;
      }
      break;
    }
    case EdgeList::ring_waits: {
      constexpr char const* names[] = {"parameters",
                                       "gradients",
                                       "activations in",
                                       "activations out",
                                       "saves",
                                       "checkpoint",
                                       "boundary gradient",
                                       "offloaded saves",
                                       "landing"};
      auto const ring = action.ring_waits[edge.index].ring.kind;
      kind.name += std::string("former users of ") + names[static_cast<std::size_t>(ring)];
      kind.rules = {Rule::buffer_reuse};
      break;
    }
    case EdgeList::lane_waits:
      kind.name += "activation copies of the call before";
      kind.rules = {Rule::queueing};
      break;
  }
  auto const is_rule = *kind.rules.begin() <= Rule::share_before_gather;
  kind.group = is_rule ? name_of(*kind.rules.begin()) : kind.name;
  return kind;
}

/// Two actions whose order matters.
struct Conflict {
  std::size_t first = 0;   ///< Must have ended
  std::size_t second = 0;  ///< before this one begins.
  /// The reason: the content of a location, or a place on a link.
  bool of_content = true;
};

namespace mutants {

/// A part of a location, as bytes of a tensor. \c tensor all: everything.
struct Extent {
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  std::size_t use = all;
  std::size_t tensor = all;
  Bytes begin = 0;
  Bytes end = std::numeric_limits<Bytes>::max();

  [[nodiscard]] bool meets(Extent const& other) const noexcept {
    auto const same = [](std::size_t a, std::size_t b) { return a == all || b == all || a == b; };
    return same(use, other.use) && same(tensor, other.tensor) && begin < other.end &&
           other.begin < end;
  }
};

/// The part of a buffer of \p kind that \p action accesses.
inline std::vector<Extent> extents_of(BufferKind kind, Action const& action) {
  std::vector<Extent> extents;
  switch (kind) {
    case BufferKind::parameters:
    case BufferKind::gradients:
    case BufferKind::landing:
    case BufferKind::gradient:
      for (auto const& piece : action.pieces) {
        auto const use = kind == BufferKind::landing ? Extent::all : piece.use.index();  // shared
        extents.push_back({use, piece.tensor, piece.offset, piece.offset + piece.bytes});
      }
      if (action.lane.kind == LaneKind::compute) {
        for (auto const use : action.uses) {
          extents.push_back({use.index()});
        }
        return extents;
      }
      break;
    case BufferKind::activations_in:  // "use" 0: for a recomputation, 1: the gradient
      if (action.kind == ActionKind::upload_activation || action.kind == ActionKind::recompute) {
        extents.push_back({0});
      } else if (action.kind == ActionKind::upload_gradient) {
        extents.push_back({1});
      }
      break;
    case BufferKind::activations_out:  // "use": the layer that makes it; downloads read all
      if (action.kind == ActionKind::send_boundary || action.lane.kind == LaneKind::compute) {
        extents.push_back({action.layer.index()});
      }
      break;
    default:
      break;
  }
  if (extents.empty()) {
    extents.emplace_back();
  }
  return extents;
}

/// Whether \p copy, in the direction and on the device of \p chunk, is due before the chunk or in
/// its window: see `Action::window_slot`. The windows of a slot count from 0. An upload of a
/// micro-batch precedes its own window by the number of activations that the device holds, less
/// one; a download comes in the window after its own.
inline bool is_due(UnrolledAction const& copy,
                   UnrolledAction const& chunk,
                   std::span<UnrolledAction const> copies_of_lane) {
  auto const up = chunk.action->kind == ActionKind::upload_parameters;
  auto const ring =
      chunk.source->rings.find({BufferKind::activations_in, chunk.action->lane.device, 0});
  auto const held = ring == chunk.source->rings.end() ? 1 : ring->second.count;
  auto const window_of = [&](std::size_t m) { return up ? (m < held ? 0 : m - held + 1) : m + 1; };
  auto const window = chunk.action->micro_batch.index();
  auto const micro_batch = copy.action->micro_batch.index();
  if (copy.graph != chunk.graph && (copy.graph > chunk.graph || !up)) {
    return copy.graph < chunk.graph;
  }
  if (auto const slot = chunk.action->window_slot; slot.valid()) {
    return copy.graph < chunk.graph || copy.action->slot < slot ||
           (copy.action->slot == slot && window_of(micro_batch) <= window);
  }
  if (!up) {
    return copy.action->slot <= chunk.action->slot;
  }
  if (copy.graph == chunk.graph) {
    return false;  // its own slot needs both
  }
  // The windows of the lane's last slot before, counted from their end.
  UnrolledAction const* end = nullptr;
  for (auto const& other : copies_of_lane) {
    if (other.graph < chunk.graph) {
      end = &other;
    }
  }
  if (end == nullptr || copy.graph != end->graph || copy.action->slot != end->action->slot) {
    return end != nullptr;
  }
  std::size_t windows = 1;  // of the chunk's slot
  for (auto const& action : chunk.source->actions) {
    if (action.lane.kind == LaneKind::compute) {
      windows = std::max(windows, action.micro_batch.index() + 1);
    }
  }
  auto const behind = std::max(windows - window, held) - held;  // micro-batches that are not due
  return micro_batch + behind <= end->action->micro_batch.index();
}

}  // namespace mutants

/// All pairs whose order matters, found from the locations that both actions access, or the queues
/// that both stand in. This follows no content and leaves no pair to follow from others.
inline std::vector<Conflict> conflicts_of(std::span<UnrolledAction const> actions) {
  std::vector<Conflict> conflicts;
  struct User {
    std::size_t action;
    Access access;
    std::vector<mutants::Extent> extents;
  };
  std::map<Location, std::vector<User>> users;
  std::map<Lane, std::vector<UnrolledAction>> copies;
  std::map<Lane, std::vector<std::size_t>> copy_numbers;
  for (std::size_t i = 0; i < actions.size(); ++i) {
    for (auto const& access : actions[i].accesses) {
      auto const kind = access.location.ring.kind;
      if (kind > BufferKind::norm) {
        continue;  // the controller's
      }
      User const user{i, access, mutants::extents_of(kind, *actions[i].action)};
      auto& earlier = users[access.location];
      for (auto const& other : earlier) {
        // The next content of an entry may lie anywhere in it.
        auto const moved = kind < BufferKind::master && other.access.content != access.content;
        auto const meets = [&](mutants::Extent const& mine) {
          return std::any_of(other.extents.begin(), other.extents.end(), [&](auto const& extent) {
            return extent.meets(mine);
          });
        };
        if (other.action != i && (other.access.writes || access.writes) &&
            (moved || std::any_of(user.extents.begin(), user.extents.end(), meets))) {
          conflicts.push_back({other.action, i, true});
        }
      }
      earlier.push_back(user);
    }
    auto const lane = actions[i].lane;
    if (lane.kind == LaneKind::activation_up || lane.kind == LaneKind::activation_down) {
      copies[lane].push_back(actions[i]);
      copy_numbers[lane].push_back(i);
    }
  }
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (actions[i].action->gated) {
      auto const up = actions[i].lane.kind == LaneKind::parameter_up;
      Lane const lane{up ? LaneKind::activation_up : LaneKind::activation_down,
                      actions[i].lane.device};
      for (std::size_t c = 0; c < copies[lane].size(); ++c) {
        if (mutants::is_due(copies[lane][c], actions[i], copies[lane])) {
          conflicts.push_back({copy_numbers[lane][c], i, false});
        }
      }
    }
  }
  return conflicts;
}

/// The place of a dropped edge.
enum class Scope : std::uint8_t { always, even_iterations, odd_iterations };

/// The fate of a sequence that lacks edges.
struct MutantEffect {
  bool is_implied = true;  ///< Other edges keep every pair in order that the dropped edges kept.
  bool changes_result = false;  ///< Two accesses of one location may come in either order.
  bool changes_queues = false;  ///< An activation copy may stand behind a chunk.
  std::set<Rule> found;         ///< By `verify`.
  std::string first_text;       ///< The text of the first violation.

  /// Such an edge only paces: without it copies go earlier, and that harms nothing.
  [[nodiscard]] bool only_paces() const noexcept {
    return !is_implied && !changes_result && !changes_queues;
  }
};

/// Drops edges from the graphs of a sequence and examines the result, by brute force over \ref
/// conflicts_of, and by `verify`.
class MutantLab {
 public:
  /// \p graphs must outlive the lab.
  MutantLab(TrainingGraphs const& graphs, std::vector<Issue> issues)
      : graphs_(graphs),
        issues_(std::move(issues)),
        odd_(graphs),
        even_(graphs),
        actions_(sequence_of(odd_, even_, issues_).unroll()),
        conflicts_(conflicts_of(actions_)) {}

  [[nodiscard]] std::size_t action_count() const noexcept { return actions_.size(); }

  /// Conflicts that the unchanged graphs leave open.
  [[nodiscard]] std::vector<Conflict> open_conflicts() const {
    return open_conflicts(SequenceOrder(actions_));
  }

  /// Edges of one action in ascending order, or of several.
  [[nodiscard]] MutantEffect without(std::span<Edge const> edges, Scope scope) {
    drop_all(edges, scope);
    auto const actions = sequence_of(odd_, even_, issues_).unroll();
    SequenceOrder const order(actions);
    MutantEffect effect;
    for (std::size_t i = 0; i < actions.size() && effect.is_implied; ++i) {
      for (auto const wait : actions_[i].waits) {
        effect.is_implied = effect.is_implied && order.holds(wait, i);
      }
    }
    if (!effect.is_implied) {
      for (auto const& open : open_conflicts(order)) {
        (open.of_content ? effect.changes_result : effect.changes_queues) = true;
      }
      auto const violations = verify(actions, order, actions.size());
      for (auto const& violation : violations) {
        effect.found.insert(violation.rule);
      }
      effect.first_text = violations.empty() ? "" : violations.front().text;
    }
    restore(edges);
    return effect;
  }
  [[nodiscard]] MutantEffect without(Edge const& edge, Scope scope) {
    return without(std::span(&edge, 1), scope);
  }

 private:
  [[nodiscard]] std::vector<Conflict> open_conflicts(SequenceOrder const& order) const {
    std::vector<Conflict> open;
    for (auto const& conflict : conflicts_) {
      if (!order.holds(conflict.first, conflict.second)) {
        open.push_back(conflict);
      }
    }
    return open;
  }

  void drop_all(std::span<Edge const> edges, Scope scope) {
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
      if (scope != Scope::even_iterations) {
        drop(odd_.of(edge->graph), *edge);
      }
      if (scope != Scope::odd_iterations) {
        drop(even_.of(edge->graph), *edge);
      }
    }
  }
  void restore(std::span<Edge const> edges) {
    for (auto const& edge : edges) {
      auto const& action = graphs_.of(edge.graph).actions[edge.action];
      odd_.of(edge.graph).actions[edge.action] = action;
      even_.of(edge.graph).actions[edge.action] = action;
    }
  }

  TrainingGraphs const& graphs_;
  std::vector<Issue> issues_;
  TrainingGraphs odd_;
  TrainingGraphs even_;
  UnrolledActions actions_;  // as built
  std::vector<Conflict> conflicts_;
};

}  // namespace roundpipe::test
