// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief DualPipe: micro-batches enter the pipeline at both ends.

#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/schedule/resident_stage_tasks.hpp>

#include <array>
#include <cstddef>
#include <deque>

namespace roundpipe {

/// \brief The first half of a round's micro-batches run stage s on device s, the second half on
/// device N - 1 - s, so that the halves meet (DualPipe, DeepSeek-V3 technical report 2024,
/// arXiv:2412.19437, section 3.2.1 and figure 5).
/// **Every device holds two stages, so the devices hold the weights twice.** Where the halves meet,
/// a device alternates between a forward of one and a whole backward of the other. Backwards are
/// split where their weight half fills what would be bubbles. No stage is fused. In flight: N + 1
/// micro-batches on each device. Bubble of equal stages with forwards of F and backwards of B for
/// the input and W for the weights, where W <= B <= F <= B + W: (N / 2 - 1)(F + B - W) on each
/// device; ZB-H1 has (N - 1)(F + B - W). (The report's (N / 2 - 1)(F&B + B - 3 W) holds for a
/// forward and a backward that run as one block, F&B; here they are two tasks.) Rounds run one
/// after another.
class DualPipeSchedule {
 public:
  [[nodiscard]] static constexpr bool fuses() noexcept { return false; }

  /// The tasks of each device, in its order. \throws Error (invalid_argument) when there are no
  /// stages, devices, micro-batches or rounds, the number of devices is odd, the number of stages
  /// is not N, the number of micro-batches in a round is odd or less than 2 (N - 1), backward
  /// stages do not mirror forward ones, or a stage is fused.
  [[nodiscard]] DeviceTasks tasks(ScheduleShape const& shape) const;

  /// Devices keep their stages from call to call: 0. \throws Error (invalid_argument) when there
  /// are no stages, devices, micro-batches or rounds.
  [[nodiscard]] std::size_t advance(ScheduleShape const& shape) const {
    check(shape);
    return 0;
  }

 private:
  /// The end at which a micro-batch enters the pipeline: the nearer one to a device, or the other.
  enum End : std::size_t { near, far };

  /// Writes the tasks of a device, and counts the progress of the micro-batches of either end.
  class Writer {
   public:
    Writer(detail::ResidentStageTasks& tasks,
           ScheduleShape const& shape,
           std::size_t round,
           std::size_t device)
        : tasks_(tasks),
          devices_(shape.devices),
          half_(shape.micro_batches_per_round / 2),
          round_(round),
          device_(device) {}

    void forward(End end) { tasks_.forward(turn(end, forwards_[end]++)); }
    void backward(End end) { tasks_.backward(turn(end, backwards_[end]++)); }
    void input_gradient(End end);
    /// The oldest pending one.
    void weight_gradient() {
      tasks_.weight_gradient(later_.front());
      later_.pop_front();
    }

   private:
    using Turn = detail::ResidentStageTasks::Turn;

    [[nodiscard]] Turn turn(End end, std::size_t i) const;

    detail::ResidentStageTasks& tasks_;
    std::size_t devices_;
    std::size_t half_;
    std::size_t round_;
    std::size_t device_;
    std::array<std::size_t, 2> forwards_{};
    std::array<std::size_t, 2> backwards_{};
    std::deque<Turn> later_;
  };

  static void write(detail::ResidentStageTasks& tasks,
                    ScheduleShape const& shape,
                    std::size_t round,
                    std::size_t device);
};

static_assert(Schedule<DualPipeSchedule>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/schedule/impl/dualpipe_schedule.ipp>
#endif
