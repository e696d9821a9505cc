// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Keeps an issuing thread from running too far ahead of its device.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>

#include <cstddef>
#include <vector>

namespace roundpipe {

/// Makes the thread that issues what a device computes sleep while as many compute actions are
/// issued but not done as the backend's opt-in `compute_actions_ahead` allows. Without the opt-in
/// it does nothing. For one thread.
///
/// The thread waits for what it has issued itself, so that threads which all follow the graphs'
/// issue order still cannot wait in a circle.
template <Backend B>
class IssuePace {
 public:
  IssuePace(B& backend, DeviceId device) {
    if constexpr (limited) {
      for (std::size_t i = 0; i < groups; ++i) {
        ends_.push_back(backend.make_event(device));
      }
    }
  }

  /// Called before a compute action is issued.
  void before() {
    if constexpr (limited) {
      if (issued_ % group == 0 && issued_ >= groups * group) {
        ends_[issued_ / group % groups].wait();
      }
    }
  }
  /// Called after it, with its stream.
  void after(typename B::Stream& stream) {
    if constexpr (limited) {
      if (++issued_ % group == 0) {
        stream.record(ends_[(issued_ / group - 1) % groups]);
      }
    }
  }

 private:
  static constexpr bool limited = HasActionLimit<B>;
  static constexpr std::size_t groups = 4;
  static constexpr std::size_t group = [] {
    if constexpr (limited) {
      return B::compute_actions_ahead / groups;
    }
    return std::size_t{1};
  }();

  std::vector<typename B::Event> ends_;  // of the latest groups of actions
  std::size_t issued_ = 0;
};

}  // namespace roundpipe
