// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/pass_costs.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/schedule/earliest_finish_schedule.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::vector<StageTime> stage_times(std::span<LayerCost const> costs,
                                                    Partition const& partition) {
  std::vector<StageTime> times;
  for (auto const& [kind, range] : stages_of(partition)) {
    require(range.first <= costs.size() && range.count <= costs.size() - range.first,
            Errc::invalid_argument,
            "a stage has layers that the model does not have");
    times.emplace_back();
    for (auto const& cost : costs.subspan(range.first, range.count)) {
      for (auto const& pass : layer_passes(kind)) {
        times.back().add(pass, seconds_of(pass.kind, cost));
      }
    }
  }
  return times;
}

ROUNDPIPE_INLINE EarliestFinishSchedule::EarliestFinishSchedule(std::vector<StageTime> stages,
                                                                std::vector<double> speeds,
                                                                double hand_over_s)
    : stages_(std::move(stages)), speeds_(std::move(speeds)), hand_over_s_(hand_over_s) {
  auto const legal = [](double s) { return s >= 0 && std::isfinite(s); };
  require(!speeds_.empty(), Errc::invalid_argument, "a schedule needs at least one device");
  auto const moves = [](double speed) { return speed > 0 && std::isfinite(speed); };
  require(std::all_of(speeds_.begin(), speeds_.end(), moves),
          Errc::invalid_argument,
          "a device's speed must be finite and above zero");
  auto const is_legal = [&](StageTime const& time) {
    return legal(time.early_s) && legal(time.late_s);
  };
  require(legal(hand_over_s_) && std::all_of(stages_.begin(), stages_.end(), is_legal),
          Errc::invalid_argument,
          "a time must be finite and not negative");
}

ROUNDPIPE_INLINE DeviceTasks EarliestFinishSchedule::tasks(ScheduleShape const& shape) const {
  check_known(shape);
  if (equal()) {
    return RoundRobinSchedule{}.tasks(shape);
  }
  auto best = deal(shape, Rule{});
  for (auto const& rule : {Rule{.waiting = 0.25}, Rule{.waiting = 1}, Rule{.round_robin = true}}) {
    if (auto other = deal(shape, rule); other.end_s < best.end_s) {
      best = std::move(other);
    }
  }
  return std::move(best.tasks);
}

ROUNDPIPE_INLINE bool EarliestFinishSchedule::equal() const {
  return std::adjacent_find(speeds_.begin(), speeds_.end(), std::not_equal_to{}) == speeds_.end();
}

ROUNDPIPE_INLINE void EarliestFinishSchedule::check_known(ScheduleShape const& shape) const {
  check(shape);
  require(shape.stages() == stages_.size(),
          Errc::invalid_argument,
          "earliest finish needs the times of all stages, and of no others");
  require(shape.devices == speeds_.size(),
          Errc::invalid_argument,
          "earliest finish needs the speeds of all devices, and of no others");
}

ROUNDPIPE_INLINE EarliestFinishSchedule::Deal EarliestFinishSchedule::deal(
    ScheduleShape const& shape, Rule const& rule) const {
  Deal deal{DeviceTasks(shape.devices), 0};
  std::vector<double> free_s(shape.devices, 0.0);
  std::size_t slots = 0;
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    Run before{shape.devices,
               std::vector<double>(shape.micro_batches_per_round, 0.0)};  // on no device
    for (std::size_t stage = 0; stage < shape.stages(); ++stage, ++slots) {
      auto const on = [&](std::size_t device) {
        return run(stage, device, free_s[device], before, rule);
      };
      auto best = on(rule.round_robin ? slots % shape.devices : 0);
      for (std::size_t device = 1; device < shape.devices && !rule.round_robin; ++device) {
        auto other = on(device);
        if (std::tie(other.score_s, other.free_s) < std::tie(best.score_s, best.free_s)) {
          best = std::move(other);
        }
      }
      auto& list = deal.tasks[best.device];
      auto const slot = detail::slot_tasks(shape, StageId(stage), RoundId(round));
      list.insert(list.end(), slot.begin(), slot.end());
      free_s[best.device] = best.ends_s.back();
      deal.end_s = std::max(deal.end_s, best.ends_s.back());
      before = std::move(best);
    }
  }
  return deal;
}

ROUNDPIPE_INLINE EarliestFinishSchedule::Run EarliestFinishSchedule::run(std::size_t stage,
                                                                         std::size_t device,
                                                                         double free_s,
                                                                         Run const& before,
                                                                         Rule const& rule) const {
  Run run{device, {}, free_s, 0};
  auto const passed_on = before.device < speeds_.size() && before.device != device;
  StageTime const time{stages_[stage].early_s / speeds_[device],
                       stages_[stage].late_s / speeds_[device]};
  double waited_s = 0;
  for (auto const end_s : before.ends_s) {
    auto const done = run_stage(time, free_s, end_s + (passed_on ? hand_over_s_ : 0));
    waited_s += done.start_s - done.ready_s;
    free_s = done.end_s;
    run.ends_s.push_back(free_s);
  }
  run.score_s = free_s + rule.waiting * waited_s;
  return run;
}

}  // namespace roundpipe
