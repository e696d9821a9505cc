// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs a sequence of graphs through all of its interleavings, on symbols instead of
/// numbers.

#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// The results of an exploration.
struct Exploration {
  std::size_t states = 0;
  double interleavings = 0;   ///< Ways from the first state to an end, through visited states.
  bool is_exhaustive = true;  ///< Whether no state was left out.
  bool deadlocks = false;
  bool differs = false;  ///< An action reads, or the end holds, other content than in issue order.
  /// Whether the interleaving that differs ends with other weights.
  bool ends_in_other_weights = false;
  std::string first_text;  ///< The first action that differs.
};

/// \brief A controlled scheduler: it decides when each action begins and when it ends.
///
/// An action may begin when all of these have ended: the action before it on its lane, all actions
/// that it waits for, and all actions of earlier epochs. It reads its locations when it begins and
/// again when it ends. The locations that it writes are undefined from its beginning to its end.
/// Contents are hashes of everything that led to them. A location is cut as memory is: chunks write
/// pieces, layers use the pieces of their blocks, and the next content of a ring's entry lies
/// across all pieces of the former one.
///
/// A state is the progress of each lane and the contents of memory; the explorer enters each state
/// once. It therefore visits all interleavings, unless there are more than \c most states.
class Explorer {
 public:
  /// \p actions must outlive the explorer.
  explicit Explorer(std::span<UnrolledAction const> actions) : actions_(actions) {
    number_lanes();
    find_cells();
    run_in_issue_order();
  }

  [[nodiscard]] Exploration explore(std::size_t most) {
    reset();
    most_ = most;
    result_ = {};
    known_.clear();
    result_.interleavings = visit();
    result_.states = known_.size();
    return result_;
  }

 private:
  using Value = std::uint64_t;

  struct Touch {
    std::size_t cell = 0;
    std::size_t label = no_cell;  // the cell that names the content of a ring's entry
    std::uint64_t content = 0;
  };
  struct Plan {
    std::size_t lane = 0;
    std::vector<Touch> reads;
    std::vector<Touch> adds;  // writes that do not overwrite
    std::vector<Touch> writes;
    Value expected = 0;        // its reads in issue order
    Value expected_start = 0;  // the same, including the targets of its adds
  };
  struct Key {
    Value progress = 0;
    Value memory = 0;
    friend bool operator==(Key const&, Key const&) = default;
  };
  struct KeyHash {
    std::size_t operator()(Key const& key) const noexcept {
      return static_cast<std::size_t>(key.progress ^ key.memory);
    }
  };

  static constexpr std::size_t no_cell = static_cast<std::size_t>(-1);
  static constexpr Value undefined = 0xbadbadbad;

  static Value mix(Value a, Value b) noexcept {
    auto x = a * 0x9e3779b97f4a7c15U + b + 0x7f4a7c15;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
  }

  void number_lanes() {
    std::map<Lane, std::size_t> numbers;
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      auto const lane = numbers.try_emplace(actions_[i].lane, numbers.size()).first->second;
      plans_.emplace_back().lane = lane;
      lanes_.resize(numbers.size());
      lanes_[lane].push_back(i);
      before_epoch_.resize(std::max(before_epoch_.size(), actions_[i].epoch + 2), 0);
      ++before_epoch_[actions_[i].epoch + 1];
    }
    for (std::size_t e = 1; e < before_epoch_.size(); ++e) {
      before_epoch_[e] += before_epoch_[e - 1];
    }
  }

  static bool is_ring(BufferKind kind) noexcept { return kind < BufferKind::master; }

  /// A part of a location: for chunks by piece, otherwise by use, otherwise all of it.
  using Part = std::array<std::size_t, 3>;

  [[nodiscard]] static std::vector<Part> own_parts(BufferKind kind, Action const& action) {
    std::vector<Part> parts;
    switch (kind) {
      case BufferKind::parameters:
      case BufferKind::landing:
      case BufferKind::gradient:
        for (auto const& piece : action.pieces) {
          auto const use = kind == BufferKind::landing ? 0 : piece.use.index();  // uses share it
          parts.push_back({use, piece.tensor, static_cast<std::size_t>(piece.offset)});
        }
        break;
      case BufferKind::gradients:
        for (auto const& piece : action.pieces) {
          parts.push_back({piece.use.index(), 0, 0});
        }
        for (auto const use : action.uses) {
          parts.push_back({use.index(), 0, 0});
        }
        break;
      case BufferKind::activations_in:
        if (action.kind == ActionKind::upload_gradient) {
          parts.push_back({1, 0, 0});
        } else if (action.kind != ActionKind::backward) {
          parts.push_back({0, 0, 0});
        }
        break;
      default:
        break;
    }
    return parts;
  }

  void find_cells() {
    std::map<Location, std::map<Part, std::size_t>> parts;
    std::map<Location, std::size_t> labels;
    for (auto const& action : actions_) {
      for (auto const& access : action.accesses) {
        auto& known = parts[access.location];
        for (auto const& part : own_parts(access.location.ring.kind, *action.action)) {
          known.try_emplace(part, 0);
        }
        labels.try_emplace(access.location, no_cell);
      }
    }
    for (auto& [location, known] : parts) {
      if (known.empty()) {
        known[{}] = 0;
      }
      if (is_ring(location.ring.kind)) {
        labels[location] = cells_++;
        entries_.resize(cells_);
      }
      for (auto& [part, cell] : known) {
        cell = cells_++;
        entries_.resize(cells_);
        if (is_ring(location.ring.kind)) {
          entries_[labels[location]].push_back(cell);
        }
        is_weight_.resize(cells_, false);
        is_weight_[cell] = location.ring.kind == BufferKind::master ||
                           location.ring.kind == BufferKind::optimizer_copy;
      }
    }
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      auto const& action = *actions_[i].action;
      for (auto const& access : actions_[i].accesses) {
        auto const own = own_parts(access.location.ring.kind, action);
        for (auto const& [part, cell] : parts[access.location]) {
          auto const of_use =  // a layer reads all pieces of its blocks
              access.location.ring.kind == BufferKind::parameters && action.pieces.empty()
                  ? std::find(action.uses.begin(), action.uses.end(), BlockUseId(part[0])) !=
                        action.uses.end()
                  : own.empty();
          if (of_use || std::find(own.begin(), own.end(), part) != own.end()) {
            Touch const touch{cell, labels[access.location], access.content};
            if (!access.writes) {
              plans_[i].reads.push_back(touch);
            } else {
              plans_[i].writes.push_back(touch);
              if (adds(access.location.ring.kind, action)) {
                plans_[i].adds.push_back(touch);
              }
            }
          }
        }
      }
      auto& plan = plans_[i];
      auto const is_own = [&](Touch const& touch) {
        return std::any_of(plan.writes.begin(), plan.writes.end(), [&](Touch const& own) {
          return own.cell == touch.cell;
        });
      };
      auto const own = std::stable_partition(
          plan.reads.begin(), plan.reads.end(), [&](Touch const& touch) { return !is_own(touch); });
      plan.adds.insert(plan.adds.end(), own, plan.reads.end());
      plan.reads.erase(own, plan.reads.end());
    }
  }

  /// Whether the content that \p action leaves in a buffer depends on the content before.
  static bool adds(BufferKind kind, Action const& action) noexcept {
    switch (action.kind) {
      case ActionKind::backward:
        return kind == BufferKind::gradients && !action.first;
      case ActionKind::accumulate_gradient:
        return !action.first;
      case ActionKind::optimizer_step:
        return kind == BufferKind::optimizer_copy;
      default:
        return false;
    }
  }

  void reset() {
    memory_.assign(cells_, 0);
    memory_hash_ = 0;
    progress_.assign(lanes_.size(), 0);
    progress_hash_ = 0;
    ended_.assign(actions_.size(), false);
    ended_count_ = 0;
    log_.clear();
  }

  void store(std::size_t cell, Value value) {
    log_.emplace_back(cell, memory_[cell]);
    set(cell, value);
  }
  void set(std::size_t cell, Value value) {
    memory_hash_ ^= mix(cell, memory_[cell]) ^ mix(cell, value);
    memory_[cell] = value;
  }
  void undo(std::size_t mark) {
    while (log_.size() > mark) {
      set(log_.back().first, log_.back().second);
      log_.pop_back();
    }
  }

  [[nodiscard]] Value hash_of(Value value, std::vector<Touch> const& touches) const {
    for (auto const& touch : touches) {
      value = mix(value, memory_[touch.cell]);
      if (touch.label != no_cell) {
        value = mix(value, memory_[touch.label]);
      }
    }
    return value;
  }
  /// The content that action \p i finds when it begins, or when it ends.
  [[nodiscard]] Value find(std::size_t i, bool runs) const {
    auto const& plan = plans_[i];
    auto const value = hash_of(1, plan.reads);
    if (!runs) {
      return hash_of(value, plan.adds);
    }
    auto const is_mine = [&](Touch const& touch) {
      return memory_[touch.cell] == mix(undefined, i) &&
             (touch.label == no_cell || memory_[touch.label] == touch.content + 1);
    };
    auto const writes_alone = std::all_of(plan.writes.begin(), plan.writes.end(), is_mine);
    return writes_alone ? value : mix(value, undefined);
  }

  /// Writes the result of \p found; nothing: the action still runs.
  void write(std::size_t i, std::optional<Value> found) {
    for (auto const& touch : plans_[i].writes) {
      if (touch.label != no_cell && memory_[touch.label] != touch.content + 1) {
        for (auto const other : entries_[touch.label]) {
          store(other, undefined);
        }
        store(touch.label, touch.content + 1);
      }
      auto const kind = static_cast<Value>(actions_[i].action->kind);
      store(touch.cell, found ? mix(mix(*found, kind), touch.cell) : mix(undefined, i));
    }
  }

  void move(std::size_t lane, std::size_t to) {
    progress_hash_ ^= mix(lane + 1, progress_[lane]) ^ mix(lane + 1, to);
    progress_[lane] = to;
  }

  void run_in_issue_order() {
    reset();
    for (std::size_t i = 0; i < actions_.size(); ++i) {
      plans_[i].expected_start = find(i, false);
      write(i, std::nullopt);
      plans_[i].expected = find(i, true);
      write(i, plans_[i].expected_start);
    }
    final_memory_ = memory_;
  }

  /// The next action of \p lane and whether it runs; or none.
  [[nodiscard]] std::optional<std::pair<std::size_t, bool>> next(std::size_t lane) const {
    auto const at = progress_[lane] / 2;
    if (at == lanes_[lane].size()) {
      return std::nullopt;
    }
    auto const i = lanes_[lane][at];
    auto const runs = progress_[lane] % 2 == 1;
    auto const& action = actions_[i];
    auto const may_begin = ended_count_ >= before_epoch_[action.epoch] &&
                           std::all_of(action.waits.begin(),
                                       action.waits.end(),
                                       [&](std::size_t wait) { return ended_[wait]; });
    return runs || may_begin ? std::optional(std::pair(i, runs)) : std::nullopt;
  }

  /// Visits all states that can follow; returns the number of ways to an end.
  double visit() {
    Key const key{progress_hash_, memory_hash_};
    if (auto const found = known_.find(key); found != known_.end()) {
      return found->second;
    }
    if (known_.size() >= most_) {
      result_.is_exhaustive = false;
      return 0;
    }
    auto& ways = known_[key];  // stays where it is
    auto const choices = sorted_choices();
    if (choices.empty()) {
      check_end();
      ways = 1;
    }
    for (auto const& [i, runs] : choices) {
      if (result_.differs || result_.deadlocks) {
        break;
      }
      auto const mark = log_.size();
      auto const lane = plans_[i].lane;
      auto const& plan = plans_[i];
      if (find(i, runs) != (runs ? plan.expected : plan.expected_start)) {
        result_.differs = true;
        result_.first_text = to_string(actions_[i]);
        finish_anyhow();
        break;
      }
      step(i, runs, plan.expected_start);
      ways += visit();
      undo(mark);
      move(lane, progress_[lane] - 1);
      if (runs) {
        ended_[i] = false;
        --ended_count_;
      }
    }
    return ways;
  }

  /// Actions of later iterations first: they are the ones that an order must hold back.
  [[nodiscard]] std::vector<std::pair<std::size_t, bool>> sorted_choices() const {
    std::vector<std::pair<std::size_t, bool>> choices;
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (auto const choice = next(lane)) {
        choices.push_back(*choice);
      }
    }
    std::sort(choices.rbegin(), choices.rend());
    return choices;
  }

  /// Begins action \p i, or ends it if it \p runs and has found \p found.
  void step(std::size_t i, bool runs, Value found) {
    write(i, runs ? std::optional(found) : std::nullopt);
    move(plans_[i].lane, progress_[plans_[i].lane] + 1);
    if (runs) {
      ended_[i] = true;
      ++ended_count_;
    }
  }

  void check_end() {
    if (ended_count_ < actions_.size()) {
      result_.deadlocks = true;
    } else if (memory_ != final_memory_) {
      result_.differs = true;
      result_.first_text = "the end";
      compare_weights();
    }
  }

  void compare_weights() {
    for (std::size_t cell = 0; cell < cells_; ++cell) {
      result_.ends_in_other_weights = result_.ends_in_other_weights ||
                                      (is_weight_[cell] && memory_[cell] != final_memory_[cell]);
    }
  }

  /// Continues from the first difference, later actions first, to find the contents at the end.
  void finish_anyhow() {
    std::map<std::size_t, std::pair<Value, Value>>
        begun;  // everything found, except the targets of its adds
    for (auto choices = sorted_choices(); !choices.empty(); choices = sorted_choices()) {
      auto const [i, runs] = choices.front();
      auto const& plan = plans_[i];
      auto const known = begun.find(i);  // absent: it began before the difference
      auto const [start, reads] =
          known != begun.end() ? known->second : std::pair(plan.expected_start, plan.expected);
      if (!runs) {
        begun[i] = {find(i, false), hash_of(1, plan.reads)};
        step(i, runs, 0);
      } else {
        step(i, runs, find(i, true) == reads ? start : mix(start, find(i, true)));
      }
    }
    compare_weights();
  }

  std::span<UnrolledAction const> actions_;
  std::vector<Plan> plans_;                      // one for each action
  std::vector<std::vector<std::size_t>> lanes_;  // for each lane: its actions
  std::vector<std::size_t> before_epoch_;        // for each epoch: the number of earlier actions
  std::size_t cells_ = 0;
  std::vector<std::vector<std::size_t>> entries_;  // for each label cell: the cells of the entry
  std::vector<bool> is_weight_;                    // for each cell

  std::vector<Value> memory_;
  std::vector<Value> final_memory_;
  Value memory_hash_ = 0;
  std::vector<std::size_t> progress_;  // for each lane: two an ended action, one a begun one
  Value progress_hash_ = 0;
  std::vector<bool> ended_;
  std::size_t ended_count_ = 0;
  std::vector<std::pair<std::size_t, Value>> log_;  // overwritten values

  std::size_t most_ = 0;
  Exploration result_;
  std::unordered_map<Key, double, KeyHash> known_;
};

}  // namespace roundpipe::test
