// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/graph_history.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

ROUNDPIPE_INLINE void RunState::set_issued(ActionId id) {
  auto& issued = issued_[issuer_of(id)].value;
  auto seen = issued.load(std::memory_order_relaxed);
  if (seen != released) {
    issued.compare_exchange_strong(
        seen, issue_mark(program_->position(id)), std::memory_order_release);
  }
  issued.notify_all();
}

ROUNDPIPE_INLINE bool RunState::is_issued(ActionId id) const {
  return issued_[issuer_of(id)].value.load(std::memory_order_acquire) >=
         issue_mark(program_->position(id));
}

ROUNDPIPE_INLINE void RunState::wait_issued(ActionId id) const {
  auto const& issued = issued_[issuer_of(id)].value;
  auto const mark = issue_mark(program_->position(id));
  for (auto seen = issued.load(std::memory_order_acquire); seen < mark;
       seen = issued.load(std::memory_order_acquire)) {
    issued.wait(seen, std::memory_order_acquire);
  }
}

ROUNDPIPE_INLINE void RunState::release_waiters() {
  for (auto& issued : issued_) {
    issued.value.store(released, std::memory_order_release);
    issued.value.notify_all();
  }
  pins_.store(unpinned_for_good, std::memory_order_release);
  pins_.notify_all();
}

ROUNDPIPE_INLINE void RunState::reset() noexcept {
  for (auto& issued : issued_) {
    issued.value.store(0, std::memory_order_release);
  }
  pins_.store(0, std::memory_order_release);
  in_flight_ = false;
}

// One thread pins and then looks whether the run retires; the other lets it retire and then looks
// for pins. In one order of all four steps, at least one of the two sees the other.
ROUNDPIPE_INLINE bool RunState::pin(std::size_t number) {
  pins_.fetch_add(1, std::memory_order_seq_cst);
  if (waitable_.load(std::memory_order_seq_cst) == number) {
    return true;
  }
  unpin();
  return false;
}

ROUNDPIPE_INLINE void RunState::unpin() {
  if (pins_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    pins_.notify_all();
  }
}

ROUNDPIPE_INLINE void RunState::retire() {
  waitable_.store(none, std::memory_order_seq_cst);
  for (auto pins = pins_.load(std::memory_order_seq_cst); pins > 0;
       pins = pins_.load(std::memory_order_acquire)) {
    pins_.wait(pins, std::memory_order_acquire);
  }
}

ROUNDPIPE_INLINE void RunState::begin(std::size_t number, GraphBinding const& place) {
  ++generation_;
  number_ = number;
  place_ = place;
  for (auto& cross_run_waits : external_) {
    cross_run_waits.clear();
  }
  waitable_.store(number, std::memory_order_release);
}

ROUNDPIPE_INLINE void RunState::set_host_base(LaneKind kind, std::uint64_t base) {
  auto const lane = host_lane_index(kind);
  host_bases_.resize(std::max(host_bases_.size(), lane + 1));
  host_bases_[lane] = base;
}

}  // namespace roundpipe
