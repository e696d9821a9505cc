// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the host keeps of a layer between its forward stage and its backward stage.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace roundpipe {

/// Which boundaries are checkpoints: saved on the host from the forward to the backward.
enum class Checkpoints : std::uint8_t {
  stages,  ///< Those behind which backward stages begin. A stage recomputes all of its layers, each
           ///< from the output of the one before, and then runs them backward.
  layers,  ///< Every one. A layer is recomputed just before its backward, and makes no output.
};

/// \brief What the host keeps for the backward stages: checkpoints, and of each layer and
/// micro-batch of a round a *save level*.
///
/// A save level is a prefix of what the layer saves. Level 0 is nothing: the backward stage
/// recomputes all. The highest level is everything: it recomputes nothing. What a level keeps goes
/// to the host from the forward stage, and comes back for the backward stage. A working set means
/// nothing for layers of the fused stage.
class WorkingSet {
 public:
  WorkingSet() = default;  ///< Checkpoints between stages, and level 0 everywhere.
  /// Level 0 everywhere.
  explicit WorkingSet(Checkpoints checkpoints) : checkpoints_(checkpoints) {}

  /// Every boundary is a checkpoint, and level 0 everywhere until \ref set_level.
  /// \param level_bytes Of each layer, by level, ascending from 0; of one micro-batch at capacity.
  WorkingSet(std::vector<std::vector<Bytes>> level_bytes, std::size_t micro_batches_per_round)
      : checkpoints_(Checkpoints::layers),
        micro_batches_(micro_batches_per_round),
        levels_(std::make_shared<Levels>(level_bytes, micro_batches_)),
        level_bytes_(std::make_shared<LevelBytes const>(std::move(level_bytes))) {}

  [[nodiscard]] Checkpoints checkpoints() const noexcept { return checkpoints_; }
  /// The same, but level 0 everywhere.
  [[nodiscard]] WorkingSet without_saves() const {
    WorkingSet set(checkpoints_);
    set.overlaps_rounds_ = overlaps_rounds_;
    return set;
  }

  /// Whether a round's forward stages run between the backward stages of the round before, as
  /// `ScheduleShape::overlaps_rounds` says. Forward stages then have rings of their own on a
  /// device.
  [[nodiscard]] bool overlaps_rounds() const noexcept { return overlaps_rounds_; }
  void set_overlaps_rounds(bool overlaps) noexcept { overlaps_rounds_ = overlaps; }

  /// Makes \p set the working set of round \p round of each call. Where rounds overlap, the first
  /// one's forward stages and the last one's backward stages run alone, in less time than others,
  /// so that the link carries less.
  void set_round(std::size_t round, WorkingSet set) { rounds_.emplace_back(round, std::move(set)); }
  /// What the host keeps of round \p round of a call. Levels and bytes here are of all others.
  [[nodiscard]] WorkingSet const& of_round(std::size_t round) const noexcept {
    for (auto const& [number, set] : rounds_) {
      if (number == round) {
        return set;
      }
    }
    return *this;
  }
  /// Calls \p f with this set and with those of single rounds.
  template <class F>
  void for_each_set(F&& f) const {
    f(*this);
    for (auto const& [number, set] : rounds_) {
      f(set);
    }
  }

  /// \throws Error (invalid_argument) when there is no such layer, micro-batch or level.
  void set_level(std::size_t layer, std::size_t micro_batch, std::size_t level);

  /// The save level of a micro-batch of a round.
  [[nodiscard]] std::size_t level(std::size_t layer, std::size_t micro_batch) const noexcept {
    return layer < layers() ? levels_->of[layer * micro_batches_ + micro_batch] : 0;
  }
  /// What it keeps, at capacity.
  [[nodiscard]] Bytes bytes(std::size_t layer, std::size_t micro_batch) const noexcept {
    return bytes_of(layer, level(layer, micro_batch));
  }
  /// Whether the backward stage recomputes the layer for this micro-batch.
  [[nodiscard]] bool recomputes(std::size_t layer, std::size_t micro_batch) const noexcept {
    return recomputes_from(layer, level(layer, micro_batch));
  }

  /// What save level \p level keeps of \p layer, at capacity.
  [[nodiscard]] Bytes bytes_of(std::size_t layer, std::size_t level) const noexcept {
    return level > 0 ? (*level_bytes_)[layer][level] : 0;
  }
  /// Whether something of \p layer is recomputed where \p level is kept.
  [[nodiscard]] bool recomputes_from(std::size_t layer, std::size_t level) const noexcept {
    return layer >= layers() || level + 1 < (*level_bytes_)[layer].size();
  }
  /// Calls \p f with each save level that micro-batches of a round have of \p layer, once, the
  /// lowest first. It takes no longer for rounds of many micro-batches.
  template <class F>
  void for_each_level(std::size_t layer, F&& f) const {
    if (layer >= layers()) {
      f(std::size_t{0});
      return;
    }
    auto const& counts = levels_->counts[layer];
    for (std::size_t level = 0; level < counts.size(); ++level) {
      if (counts[level] > 0) {
        f(level);
      }
    }
  }

  /// Of all micro-batches of a round: how many keep anything of the layer.
  [[nodiscard]] std::size_t count(std::size_t layer) const noexcept {
    return layer < layers() ? micro_batches_ - levels_->counts[layer].front() : 0;
  }
  /// The most bytes of the layer that a micro-batch keeps, of any round.
  [[nodiscard]] Bytes most_bytes(std::size_t layer) const noexcept;
  /// How many micro-batches there are in a round; 1 where nothing is known of them.
  [[nodiscard]] std::size_t micro_batches_per_round() const noexcept { return micro_batches_; }

 private:
  using LevelBytes = std::vector<std::vector<Bytes>>;  // by layer and level
  struct Levels {
    Levels(LevelBytes const& level_bytes, std::size_t micro_batches);

    std::vector<std::uint8_t> of;                  // by layer and micro-batch
    std::vector<std::vector<std::size_t>> counts;  // by layer and level: the micro-batches
  };

  /// Those of which it knows the levels: all or none.
  [[nodiscard]] std::size_t layers() const noexcept {
    return level_bytes_ ? level_bytes_->size() : 0;
  }

  Checkpoints checkpoints_ = Checkpoints::stages;
  bool overlaps_rounds_ = false;
  std::size_t micro_batches_ = 1;
  std::shared_ptr<Levels> levels_;  // copies share it until one changes: searches make many
  std::shared_ptr<LevelBytes const> level_bytes_;           // likewise
  std::vector<std::pair<std::size_t, WorkingSet>> rounds_;  // those that differ
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/working_set.ipp>
#endif
