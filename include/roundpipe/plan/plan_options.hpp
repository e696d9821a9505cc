// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The size of what is planned, and the budget.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/dealt_rounds.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/stage_plan.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace roundpipe {

class BoundedAsync;  // system/bounded_async.hpp

/// The seconds of an iteration by a plan.
class PlanForecast {
 public:
  using Seconds = std::function<double(StagePlan const&)>;
  using Loses = std::function<bool(double, bool)>;

  PlanForecast() = default;  ///< None.
  /// \param seconds what an iteration takes by a plan.
  /// \param least what it takes at least, which is known much sooner; nor does it ever take less
  /// than
  ///        devices compute by the costs that plans are made with. Empty: nothing is known.
  /// \param loses see \ref loses. Empty: no plan does.
  template <std::convertible_to<Seconds> F>
  PlanForecast(F seconds, Seconds least = {}, Loses loses = {})
      : seconds_(std::move(seconds)), least_(std::move(least)), loses_(std::move(loses)) {}

  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(seconds_); }
  [[nodiscard]] double operator()(StagePlan const& plan) const { return seconds_(plan); }
  [[nodiscard]] double least(StagePlan const& plan) const {
    return least_ ? least_(plan) : -std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] bool knows_least() const noexcept { return static_cast<bool>(least_); }
  /// Whether a plan by which an iteration takes at least \p least_s, with rounds that overlap or
  /// without, is too far behind another one for a forecast.
  [[nodiscard]] bool loses(double least_s, bool overlaps_rounds) const {
    return loses_ && loses_(least_s, overlaps_rounds);
  }

 private:
  Seconds seconds_;
  Seconds least_;
  Loses loses_;
};

/// More than links could fill.
inline constexpr std::size_t most_ring_entries = 64;

/// The size of what is planned.
struct PlanOptions {
  std::size_t devices = 1;                  ///< N
  std::size_t micro_batches_per_round = 1;  ///< M_R: of a round.
  std::size_t rounds = 1;                   ///< R: of a call, on each rank.
  Bytes device_memory = 0;                  ///< Budget of each device.
  Bytes held_memory = 0;  ///< Of the budget: what a device holds besides any plan.
  /// Of the budget: what a device holds for a plan besides the plan's own memory.
  std::function<Bytes(StagePlan const&)> held_for{};

  /// Which boundaries are checkpoints. None: what the forecast says; without a forecast, those
  /// between stages, unless saves are offloaded.
  std::optional<Checkpoints> checkpoints = std::nullopt;
  /// Of how many micro-batches of a round the host keeps all that layers save; the others are
  /// recomputed. None: the save levels that the forecast prefers; without a forecast, 0. More than
  /// 0 takes checkpoints of all layers.
  std::optional<std::size_t> offloaded_micro_batches = std::nullopt;
  /// Of each layer and micro-batch of a round: the save level. It takes the place of both choices
  /// above. None: theirs.
  std::optional<std::vector<std::vector<std::size_t>>> save_levels = std::nullopt;
  /// The same of rounds of a call that have others, by round. It needs \c save_levels.
  std::map<std::size_t, std::vector<std::vector<std::size_t>>> levels_of_rounds{};
  /// Whether a round's forward stages run in turn with the backward stages of the round before.
  /// None: what the forecast says.
  std::optional<bool> overlaps_rounds = std::nullopt;
  /// Whether boundaries stay on the devices that make them, as many as there is room for. None:
  /// unless the forecast is worse; without a forecast, no.
  std::optional<bool> resident_boundaries = std::nullopt;
  /// Whether blocks of parameters that a device reads in several stages of a call stay on devices
  /// that long, as many as there is room for. None: likewise.
  std::optional<bool> resident_parameters = std::nullopt;
  /// How many entries the rings of devices have, 1 to \ref most_ring_entries each. None: what the
  /// forecast says; without a forecast, the most with which stages fit.
  std::optional<Buffering> buffering = std::nullopt;
  bool reaches_peers = false;  ///< Whether each device copies to the memory of all others.
  /// Whether boundaries that another device reads go there past the host, as many as there is room
  /// for. None: likewise. Only where devices reach each other.
  std::optional<bool> peer_boundaries = std::nullopt;
  Bytes host_memory = std::numeric_limits<Bytes>::max();  ///< Budget of the host.
  /// What the host holds for a plan, and besides. Empty: nothing.
  std::function<Bytes(StagePlan const&)> host_bytes{};
  /// Whether a refusal names the least budget of a device that would do. To find it takes longest.
  bool names_least_budget = true;
  /// The seconds of an iteration by another plan, by forecast. Plans that cannot come near it have
  /// no forecast, and the search for rounds that overlap ends early where it finds none that does.
  double seconds_to_beat = std::numeric_limits<double>::infinity();
  /// Free threads of it make forecasts ahead of the search, which finds the same. Null: none. It
  /// must outlive the search; the functions above, the forecast and policies may be asked at the
  /// same time.
  BoundedAsync* aside = nullptr;
  std::size_t ranks = 1;  ///< H: processes that train together.
  /// How many rounds of a call each rank has. Empty: \c rounds.
  std::vector<std::size_t> rounds_of_ranks{};

  /// The rounds of all ranks.
  [[nodiscard]] DealtRounds deal() const {
    return rounds_of_ranks.empty() ? DealtRounds(ranks, rounds) : DealtRounds(rounds_of_ranks);
  }
  /// Whether the host has room for \p plan.
  [[nodiscard]] bool host_has_room(StagePlan const& plan) const {
    return !host_bytes || host_bytes(plan) <= host_memory;
  }
  /// Whether boundaries may stay on devices; \p otherwise: where that is left open.
  [[nodiscard]] bool lets_stay(bool otherwise) const {
    return resident_boundaries.value_or(otherwise);
  }
  /// The same of parameters.
  [[nodiscard]] bool keeps_parameters(bool otherwise) const {
    return resident_parameters.value_or(otherwise);
  }
  /// The same of boundaries that go from device to device.
  [[nodiscard]] bool sends_to_peers(bool otherwise) const {
    return reaches_peers && devices > 1 && peer_boundaries.value_or(otherwise);
  }
  /// All that a device holds besides the memory of \p plan.
  [[nodiscard]] Bytes held_by(StagePlan const& plan) const {
    return held_memory + (held_for ? held_for(plan) : 0);
  }
};

}  // namespace roundpipe
