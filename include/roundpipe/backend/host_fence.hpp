// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Fences of the host backend: counters that the host raises and streams wait for.

#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/config.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace roundpipe {

class HostBackend;
class HostStream;

namespace detail {

/// The value of a fence, and its waiters.
class HostFenceState {
 public:
  explicit HostFenceState(std::shared_ptr<HostStatus> status) : monitor_(std::move(status)) {}

  [[nodiscard]] HostMonitor const& monitor() const noexcept { return monitor_; }

  void signal(std::uint64_t value);
  /// Returns when the value is at least \p value or the backend has stopped.
  void wait(std::uint64_t value) const;

 private:
  HostMonitor monitor_;
  std::uint64_t value_ = 0;
};

}  // namespace detail

/// \brief A counter, at first 0, that the host raises and streams wait for; models BackendFence.
///
/// Fences come from \ref HostBackend::make_fence(). A default-constructed fence belongs to no
/// backend and serves inline streams only. A fence may be destroyed while waits for it are pending;
/// then only \c abort() ends these waits. A moved-from fence can only be assigned to or destroyed.
class HostFence {
 public:
  HostFence() : HostFence(nullptr) {}
  HostFence(HostFence&&) noexcept = default;
  HostFence& operator=(HostFence&&) noexcept = default;
  ~HostFence() = default;

  /// Raises the value to \p value and releases the waiters for that value or less. A value below
  /// the current one changes nothing. Several threads may call this at once.
  void signal(std::uint64_t value) { state_->signal(value); }

 private:
  friend class HostBackend;
  friend class HostStream;

  explicit HostFence(std::shared_ptr<detail::HostStatus> status)
      : state_(std::make_shared<detail::HostFenceState>(std::move(status))) {}

  std::shared_ptr<detail::HostFenceState> state_;
};

static_assert(BackendFence<HostFence>);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_fence.ipp>
#endif
