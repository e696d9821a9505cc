// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Calls and steps one after another, unrolled into actions on physical lanes and memory.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_history.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// A piece of memory that actions use: an entry of a ring, or a copy of a plain buffer.
struct Location {
  Ring ring;              ///< With the physical device.
  std::size_t entry = 0;  ///< The entry of the ring; the copy of a plain buffer.

  friend constexpr auto operator<=>(Location const&, Location const&) noexcept = default;
  friend constexpr bool operator==(Location const&, Location const&) noexcept = default;
};

/// How an action uses a location.
struct Access {
  Location location;
  /// The content that the action finds or leaves there. Rings: the number of the acquisition.
  /// Master copies and optimizer copies: the step that wrote the weights. Gradients: the iteration.
  std::uint64_t content = 0;
  bool writes = false;
};

/// An action of one graph of a sequence.
struct UnrolledAction {
  Action const* action = nullptr;
  ActionGraph const* source = nullptr;
  ActionId id;                           ///< In \c source.
  std::size_t graph = 0;                 ///< The number of its graph in the sequence.
  std::size_t epoch = 0;                 ///< Every action of an earlier epoch is over.
  Lane lane;                             ///< With the physical device.
  std::span<std::size_t const> waits{};  ///< Numbers of unrolled actions.
  std::vector<Access> accesses{};        ///< Empty where nobody asked for them.
};

/// The actions of a sequence, in issue order, and what their \c waits point into: a copy of an
/// action must not outlive them.
class UnrolledActions {
 public:
  UnrolledActions() = default;
  UnrolledActions(UnrolledActions&&) noexcept = default;
  UnrolledActions& operator=(UnrolledActions&&) noexcept = default;

  [[nodiscard]] std::size_t size() const noexcept { return actions_.size(); }
  [[nodiscard]] UnrolledAction const* data() const noexcept { return actions_.data(); }
  [[nodiscard]] UnrolledAction const& operator[](std::size_t i) const { return actions_[i]; }
  [[nodiscard]] auto begin() const noexcept { return actions_.begin(); }
  [[nodiscard]] auto end() const noexcept { return actions_.end(); }

 private:
  friend class GraphSequence;

  std::vector<UnrolledAction> actions_;
  std::vector<std::size_t> waits_;  // of all actions
};

/// "graph 3: optimizer step of block 2", for messages.
[[nodiscard]] std::string to_string(UnrolledAction const& unrolled);

/// Graphs in the order in which a pipeline issues them.
class GraphSequence {
 public:
  explicit GraphSequence(std::size_t devices) : devices_(devices) {}

  /// Issues \p graph, which must outlive the sequence.
  GraphSequence& add(ActionGraph const& graph);
  /// Waits until everything issued is over.
  GraphSequence& synchronize() {
    ++epochs_;
    return *this;
  }

  [[nodiscard]] std::size_t devices() const noexcept { return devices_; }

  /// All actions in issue order, their accesses if \p with_accesses. A wait that names no action of
  /// the sequence points to the waiting action itself.
  [[nodiscard]] UnrolledActions unroll(bool with_accesses = true) const;

 private:
  struct Entry {
    ActionGraph const* graph;
    std::size_t epoch;
  };

  std::size_t devices_;
  std::size_t epochs_ = 0;
  std::vector<Entry> entries_;
};

/// The graphs that a training issues. They must outlive everything that refers to them.
struct TrainingSteps {
  ActionGraph const& call;
  ActionGraph const& step;
  ActionGraph const& flush;
  ActionGraph const& evaluation;
  std::size_t calls_per_step = 1;
};

/// An iteration, an evaluation of two rounds, two more iterations, a flush and another evaluation,
/// and three more iterations, so that both master copies and both gradient buffers take both roles.
/// With several calls in a step, another evaluation runs between the last two calls.
[[nodiscard]] GraphSequence training_sequence(TrainingSteps const& graphs, std::size_t devices);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/graph_sequence.ipp>
#endif
