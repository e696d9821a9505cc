// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Calls and steps one after another, unrolled into actions of physical lanes on physical
/// memory.

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_history.hpp>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// A piece of memory that actions use: a ring's entry, or a copy of a plain buffer.
struct Location {
  Ring ring;              ///< With the physical device.
  std::size_t entry = 0;  ///< Of the ring; of plain buffers: which copy.

  friend constexpr auto operator<=>(Location const&, Location const&) noexcept = default;
  friend constexpr bool operator==(Location const&, Location const&) noexcept = default;
};

/// How an action uses a location.
struct Access {
  Location location;
  /// What it finds or leaves there. Of rings: the number of the acquisition. Of master copies and
  /// optimizer copies: the step whose weights they are. Of gradients: the iteration.
  std::uint64_t content = 0;
  bool writes = false;
};

/// An action of one graph of a sequence.
struct UnrolledAction {
  Action const* action = nullptr;
  ActionGraph const* source = nullptr;
  ActionId id;                     ///< In \c source.
  std::size_t graph = 0;           ///< Its number in the sequence.
  std::size_t epoch = 0;           ///< Everything of an earlier epoch is over.
  Lane lane;                       ///< With the physical device.
  std::vector<std::size_t> waits;  ///< Numbers of unrolled actions.
  std::vector<Access> accesses;
};

/// "graph 3: optimizer step of block 2", for messages.
[[nodiscard]] inline std::string to_string(UnrolledAction const& unrolled) {
  auto text = "graph " + std::to_string(unrolled.graph) + ": " + to_string(*unrolled.action);
  if (unrolled.lane.device.valid()) {
    text += ", device " + std::to_string(unrolled.lane.device.value());
  }
  return text;
}

/// Graphs in the order in which a pipeline issues them.
class GraphSequence {
 public:
  explicit GraphSequence(std::size_t devices) : devices_(devices) {}

  /// Issues \p graph, which must outlive the sequence.
  GraphSequence& add(ActionGraph const& graph) {
    entries_.push_back({&graph, epochs_});
    return *this;
  }
  /// Waits until everything issued is over.
  GraphSequence& synchronize() {
    ++epochs_;
    return *this;
  }

  [[nodiscard]] std::size_t devices() const noexcept { return devices_; }

  /// All actions in issue order. Waits that name no action of the sequence point to itself.
  [[nodiscard]] std::vector<UnrolledAction> unroll() const;

 private:
  struct Entry {
    ActionGraph const* graph;
    std::size_t epoch;
  };

  std::size_t devices_;
  std::size_t epochs_ = 0;
  std::vector<Entry> entries_;
};

namespace detail {

/// Where a sequence stands when a graph is issued.
struct SequencePosition {
  std::size_t steps = 0;    ///< Steps issued.
  std::size_t visible = 0;  ///< The step whose weights a call reads.
};

/// How \p action uses \p buffer in a graph that is issued at \p position.
[[nodiscard]] inline Access access_of(ActionGraph const& graph,
                                      Action const& action,
                                      Buffer const& buffer,
                                      bool writes,
                                      SequencePosition const& position) {
  Access access{{buffer.ring, 0}, 0, writes};
  auto const copies = [&](std::uint64_t content, std::size_t count) {
    access.content = content;
    access.location.entry = content % count;
  };
  switch (buffer.ring.kind) {
    case BufferKind::master:
      if (action.kind == ActionKind::optimizer_step) {
        copies(position.steps + (writes ? 1 : 0), graph.master_copies);
      } else {
        copies(action.kind == ActionKind::copy_parameters ? position.steps : position.visible,
               graph.master_copies);
      }
      break;
    case BufferKind::optimizer_copy:
      access.content = position.steps + (action.kind == ActionKind::optimizer_step ? 1 : 0);
      break;
    case BufferKind::gradient:
      copies(position.steps + 1, graph.gradient_buffers);
      break;
    case BufferKind::norm:
      access.content = position.steps + 1;
      break;
    default:
      break;
  }
  return access;
}

}  // namespace detail

inline std::vector<UnrolledAction> GraphSequence::unroll() const {
  std::vector<UnrolledAction> result;
  GraphHistory<std::size_t> history;
  std::vector<std::size_t> bases;  // by graph: the number of its first action
  detail::SequencePosition position;
  std::size_t first_device = 0;
  std::size_t epoch = 0;
  for (std::size_t g = 0; g < entries_.size(); ++g) {
    auto const& graph = *entries_[g].graph;
    if (std::exchange(epoch, entries_[g].epoch) != entries_[g].epoch) {
      position.visible = position.steps;  // a flush came before, where one is needed
    }
    GraphBinding const place{first_device, devices_, position.steps + 1};
    auto const base = result.size();
    bases.push_back(base);
    for (std::size_t i = 0; i < graph.actions.size(); ++i) {
      auto const& action = graph.actions[i];
      auto& unrolled = result.emplace_back();
      unrolled.action = &action;
      unrolled.source = &graph;
      unrolled.id = ActionId(i);
      unrolled.graph = g;
      unrolled.epoch = epoch;
      unrolled.lane = place.physical(action.lane);
      for (auto const wait : action.waits) {
        auto const exists = wait.valid() && wait.index() < graph.actions.size();
        unrolled.waits.push_back(base + (exists ? wait.index() : i));
      }
      for (bool const writes : {false, true}) {
        for (auto const& buffer : writes ? action.writes : action.reads) {
          auto access = detail::access_of(graph, action, buffer, writes, position);
          if (auto const ring = graph.rings.find(buffer.ring); ring != graph.rings.end()) {
            access.location.ring = place.physical(buffer.ring);
            access.content = history.ring_base(access.location.ring) + buffer.sequence;
            access.location.entry = access.content % ring->second.count;
          }
          unrolled.accesses.push_back(access);
        }
      }
    }
    history.resolve(graph, place, [&](ActionId id, auto const& past) {
      result[base + id.index()].waits.push_back(bases[past.run] + past.action.index());
    });
    history.remember(graph, place, g);
    if (devices_ > 0) {
      first_device = (first_device + graph.advance) % devices_;
    }
    if (graph.role == GraphRole::step) {
      ++position.steps;
      position.visible =
          std::max(position.visible, position.steps - static_cast<std::size_t>(graph.staleness));
    }
  }
  return result;
}

/// The graphs that a training issues; they must outlive what refers to them.
struct TrainingSteps {
  ActionGraph const& call;
  ActionGraph const& step;
  ActionGraph const& flush;
  ActionGraph const& evaluation;
  std::size_t calls_per_step = 1;
};

/// Three iterations, an evaluation of two rounds with the newest weights, and three iterations
/// more, so that both master copies and gradient buffers come in both roles. With several calls a
/// step there is another evaluation between the last two calls.
[[nodiscard]] inline GraphSequence training_sequence(TrainingSteps const& graphs,
                                                     std::size_t devices) {
  GraphSequence sequence(devices);
  auto const evaluate = [&] {
    sequence.add(graphs.flush).synchronize().add(graphs.evaluation).add(graphs.evaluation);
  };
  constexpr int iterations = 6;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    if (2 * iteration == iterations) {
      evaluate();
    }
    for (std::size_t c = 0; c < graphs.calls_per_step; ++c) {
      if (c > 0 && c + 1 == graphs.calls_per_step && iteration + 1 == iterations) {
        evaluate();
      }
      sequence.add(graphs.call);
    }
    sequence.add(graphs.step);
  }
  return sequence;
}

}  // namespace roundpipe
