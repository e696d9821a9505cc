// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The time that bytes take on a link when all links of the host share a root.

#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// Transfers as fluids: with n in flight, each runs at the rate of its link or at 1/n of the root's
/// rate, whichever is lower. Rates change whenever a transfer starts or ends.
class HostRoot {
 public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  HostRoot(std::shared_ptr<HostStatus> status, double bytes_per_second)
      : monitor_(std::move(status)), rate_(bytes_per_second > 0 ? bytes_per_second : unlimited) {}

  /// One transfer; it is in flight from construction to destruction.
  class Flow {
   public:
    /// \param link_rate Bytes a second; \ref unlimited for an unlimited link.
    Flow(HostRoot& root, Bytes bytes, double link_rate);
    Flow(Flow const&) = delete;
    Flow& operator=(Flow const&) = delete;
    ~Flow();

    /// Blocks until, at the current rate, at most \p ahead of the transfer remains. Returns false
    /// if the backend stops first.
    bool wait_until_left(HostClock::duration ahead);

   private:
    friend class HostRoot;

    HostRoot& root_;
    double bytes_left_;
    double link_rate_;
    bool limited_;
  };

 private:
  [[nodiscard]] double rate_of(Flow const& flow) const noexcept {
    return std::min(flow.link_rate_, rate_ / static_cast<double>(flows_.size()));
  }

  // The number of flows changes the rates of others only when the root is limited.
  void changed() const noexcept;

  HostClock::time_point advance();

  HostMonitor monitor_;
  double rate_;
  std::vector<Flow*> flows_;
  HostClock::time_point last_ = HostClock::now();
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_root.ipp>
#endif
