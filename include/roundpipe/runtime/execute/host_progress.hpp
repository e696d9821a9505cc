// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How far the host's lanes are, for threads and for streams that wait for them.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace roundpipe {

/// Counts the finished actions of each host lane, from 1 and across runs. Any thread may call any
/// member at any time, except \ref finish: only one thread a lane calls that.
template <Backend B>
class HostProgress {
 public:
  /// \p lanes must outlive this.
  HostProgress(B& backend, std::span<HostLaneTraits const> lanes)
      : lanes_(lanes), done_(lanes.size()) {
    restart(backend);
  }

  /// Begins at 0 again, with new fences. Nothing waits, and no stream that knew the old ones is
  /// left.
  void restart(B& backend) {
    fences_.clear();
    for (std::size_t k = 0; k < lanes_.size(); ++k) {
      fences_.push_back(make_fence(backend, lanes_[k]));
      done_[k].store(0, std::memory_order_release);
    }
  }

  /// Says that the action number \p sequence of \p lane is done, as all before it are.
  void finish(LaneKind lane, std::uint64_t sequence) {
    auto const index = position_of(lane, lanes_);
    auto expected = sequence - 1;  // else the lanes are released
    done_[index].compare_exchange_strong(expected, sequence, std::memory_order_release);
    done_[index].notify_all();
    fences_[index].signal(sequence);
  }

  [[nodiscard]] bool is_done(LaneKind lane, std::uint64_t sequence) const {
    return done_[position_of(lane, lanes_)].load(std::memory_order_acquire) >= sequence;
  }

  /// Blocks the calling thread until \ref is_done.
  void wait(LaneKind lane, std::uint64_t sequence) const {
    auto const& done = done_[position_of(lane, lanes_)];
    for (auto seen = done.load(std::memory_order_acquire); seen < sequence;
         seen = done.load(std::memory_order_acquire)) {
      done.wait(seen, std::memory_order_acquire);
    }
  }

  /// The fence that streams wait for; its values are the sequences.
  [[nodiscard]] typename B::Fence const& fence(LaneKind lane) const {
    return fences_[position_of(lane, lanes_)];
  }

  /// Says that the thread of \p lane has ended: every stream that waits for the lane may go on.
  void end(LaneKind lane) { fences_[position_of(lane, lanes_)].signal(all_passed); }

  /// Lets every \ref wait pass, for good. The backend stops the streams that wait, but \ref end
  /// those that wait for a lane that outlives errors.
  void release() noexcept {
    for (auto& done : done_) {
      done.store(all_done, std::memory_order_release);
      done.notify_all();
    }
  }

 private:
  static constexpr auto all_done = std::numeric_limits<std::uint64_t>::max();
  static constexpr auto all_passed =
      static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

  /// What a lane reads that still runs after an error must stay as it is until the lane ends.
  [[nodiscard]] static typename B::Fence make_fence(B& backend, HostLaneTraits const& lane) {
    if constexpr (HasHeldFence<B>) {
      if (lane.outlives_errors) {
        return backend.make_held_fence();
      }
    }
    return backend.make_fence();
  }

  std::span<HostLaneTraits const> lanes_;
  std::vector<typename B::Fence> fences_;         // by lane
  std::vector<std::atomic<std::uint64_t>> done_;  // by lane
};

}  // namespace roundpipe
