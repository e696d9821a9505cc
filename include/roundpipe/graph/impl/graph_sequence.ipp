// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_history.hpp>
#include <roundpipe/graph/graph_sequence.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::string to_string(UnrolledAction const& unrolled) {
  auto text = "graph " + std::to_string(unrolled.graph) + ": " + to_string(*unrolled.action);
  if (unrolled.lane.device.valid()) {
    text += ", device " + std::to_string(unrolled.lane.device.value());
  }
  return text;
}

ROUNDPIPE_INLINE GraphSequence& GraphSequence::add(ActionGraph const& graph) {
  entries_.push_back({&graph, epochs_});
  return *this;
}

namespace detail {

/// The state of a sequence when a graph is issued.
struct SequencePosition {
  std::size_t steps = 0;    ///< Steps issued.
  std::size_t visible = 0;  ///< The step whose weights a call reads.
};

/// How \p action uses \p buffer in a graph that is issued at \p position.
[[nodiscard]] ROUNDPIPE_INLINE Access access_of(ActionGraph const& graph,
                                                Action const& action,
                                                Buffer const& buffer,
                                                bool writes,
                                                SequencePosition const& position) {
  Access access{{buffer.ring, 0}, 0, writes};
  auto const copies = [&](std::uint64_t content, std::size_t count) {
    access.content = content;
    access.location.entry = content % count;
  };
  auto const evaluates_newest = graph.role == GraphRole::evaluation && graph.master_copies > 1;
  switch (buffer.ring.kind) {
    case BufferKind::master:
    case BufferKind::gathered:
      if (action.kind == ActionKind::optimizer_step) {
        copies(position.steps + (writes ? 1 : 0), graph.master_copies);
      } else if (action.kind == ActionKind::gather_weights) {  // of what this graph has written
        auto const has_copies = graph.staleness == 1 && graph.master_copies == 1;
        copies(position.steps + (has_copies ? 0 : 1), graph.master_copies);
      } else {
        copies(action.kind == ActionKind::copy_parameters || evaluates_newest ? position.steps
                                                                              : position.visible,
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

ROUNDPIPE_INLINE UnrolledActions GraphSequence::unroll(bool with_accesses) const {
  UnrolledActions unrolled_actions;
  auto& result = unrolled_actions.actions_;
  auto& waits = unrolled_actions.waits_;
  result.reserve(std::accumulate(
      entries_.begin(), entries_.end(), std::size_t{0}, [](std::size_t sum, Entry const& entry) {
        return sum + entry.graph->actions.size();
      }));
  std::vector<std::size_t> begins;  // of the waits of each action
  begins.reserve(result.capacity() + 1);
  GraphHistory<std::size_t> history;
  std::vector<std::size_t> bases;  // for each graph: the number of its first action
  detail::SequencePosition position;
  std::size_t first_device = 0;
  std::size_t epoch = 0;
  for (std::size_t g = 0; g < entries_.size(); ++g) {
    auto const& graph = *entries_[g].graph;
    epoch = entries_[g].epoch;
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
      begins.push_back(waits.size());
      for (auto const wait : action.waits) {
        auto const exists = wait.valid() && wait.index() < graph.actions.size();
        waits.push_back(base + (exists ? wait.index() : i));
      }
      history.resolve(graph, place, action, [&](auto const& past) {
        waits.push_back(bases[past.run] + past.action.index());
      });
      if (!with_accesses) {
        continue;
      }
      unrolled.accesses.reserve(action.reads.size() + action.writes.size());
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
    history.remember(graph, place, g);
    if (devices_ > 0) {
      first_device = (first_device + graph.advance) % devices_;
    }
    if (graph.role == GraphRole::flush) {
      position.visible = position.steps;
    }
    if (graph.role == GraphRole::step) {
      ++position.steps;
      position.visible =
          std::max(position.visible, position.steps - static_cast<std::size_t>(graph.staleness));
    }
  }
  begins.push_back(waits.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i].waits = std::span(waits).subspan(begins[i], begins[i + 1] - begins[i]);
  }
  return unrolled_actions;
}

ROUNDPIPE_INLINE GraphSequence training_sequence(TrainingSteps const& graphs, std::size_t devices) {
  GraphSequence sequence(devices);
  auto const evaluate = [&] {
    sequence.synchronize().add(graphs.evaluation).add(graphs.evaluation);
  };
  constexpr int iterations = 6;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    if (iteration == 1) {
      evaluate();
    }
    if (2 * iteration == iterations) {
      sequence.synchronize().add(graphs.flush).synchronize();
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
