// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Deals slots to devices of different speeds.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace roundpipe {

/// The times of a partition's stages, in execution order, on a device of speed 1.
/// \throws Error (invalid_argument) when \p costs does not have all layers of \p partition.
[[nodiscard]] std::vector<StageTime> stage_times(std::span<LayerCost const> costs,
                                                 Partition const& partition);

/// \brief Deals slots in their order, each to the device that finishes the slot first (list
/// scheduling by earliest finish time, as in HEFT, Topcuoglu et al. 2002).
///
/// A slot is a stage in a round: all its micro-batches, one after another. The schedule simulates
/// the finish of a slot: a device starts when it is free; each micro-batch waits for its arrival
/// from the previous stage. Among devices with equal finish times, the one that has been free for
/// longest takes the slot, then the first. In flight, and bubble when devices are equal: as for
/// \ref RoundRobinSchedule.
///
/// The best choice for a slot need not be the best for the call: a fast device that waits for the
/// micro-batches of a slow one is lost to other slots. The schedule therefore tries further deals:
/// round robin, and some that count part of a device's waiting as if it finished later. The deal
/// that ends first wins.
///
/// Devices of equal speed are interchangeable: the schedule deals round robin, and the next call
/// continues where this one ended. When speeds differ, devices are physical: each call starts anew
/// from the first device.
class EarliestFinishSchedule {
 public:
  /// \param stages      The stages of the calls to be dealt, forward stages first.
  /// \param speeds      By device: 1 is the reference, 0.5 takes twice as long.
  /// \param hand_over_s The time to pass a micro-batch to another device.
  /// \throws Error (invalid_argument) when there are no speeds, one is not finite and positive, or
  /// a time is negative or not finite.
  EarliestFinishSchedule(std::vector<StageTime> stages,
                         std::vector<double> speeds,
                         double hand_over_s = 0);

  /// The tasks of each device, in its order: relative devices when speeds are equal, otherwise
  /// physical ones. \throws Error (invalid_argument) when there are no stages, devices,
  /// micro-batches or rounds, or when their numbers differ from those of the given times and
  /// speeds.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const;

  /// By how many devices the slots of the next call are shifted: as in \ref RoundRobinSchedule when
  /// speeds are equal, otherwise 0. \throws Error (invalid_argument) like \ref tasks().
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check_known(shape);
    return equal() ? RoundRobinSchedule{}.advance(shape) : 0;
  }

 private:
  [[nodiscard]] bool equal() const;

  void check_known(ScheduleShape const& shape) const;

  /// How to deal a call.
  struct Rule {
    double waiting = 0;  ///< The share of a device's waiting in a slot that counts as work.
    bool round_robin = false;
  };
  /// The result of a rule.
  struct Deal {
    DeviceTasks tasks;
    double end_s = 0;
  };
  /// A slot on a device.
  struct Run {
    std::size_t device = 0;
    std::vector<double> ends_s;  ///< By micro-batch.
    double free_s = 0;           ///< When the device is free for the slot.
    double score_s = 0;          ///< The end of the slot plus the counted share of waiting.
  };

  [[nodiscard]] Deal deal(ScheduleShape const& shape, Rule const& rule) const;

  /// Runs a stage on a device that is free at \p free_s.
  [[nodiscard]] Run run(std::size_t stage,
                        std::size_t device,
                        double free_s,
                        Run const& before,
                        Rule const& rule) const;

  std::vector<StageTime> stages_;
  std::vector<double> speeds_;
  double hand_over_s_;
};

static_assert(Schedule<EarliestFinishSchedule>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/earliest_finish_schedule.ipp>
#endif
