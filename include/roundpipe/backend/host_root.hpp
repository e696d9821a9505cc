// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The time that bytes take on a link, when all links of the host share a root.

#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// Transfers as fluids: each of n in flight runs at the lesser of its link's rate and the root's
/// n-th part, from each moment at which one starts or ends to the next.
class HostRoot {
 public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  HostRoot(std::shared_ptr<HostStatus> status, double bytes_per_second)
      : monitor_(std::move(status)), rate_(bytes_per_second > 0 ? bytes_per_second : unlimited) {}

  /// One transfer, in flight from its construction to its destruction.
  class Flow {
   public:
    /// \param link_rate Bytes a second; \ref unlimited where the link is.
    Flow(HostRoot& root, Bytes bytes, double link_rate);
    Flow(Flow const&) = delete;
    Flow& operator=(Flow const&) = delete;
    ~Flow();

    /// Blocks until, at the rate of the moment, no more than \p ahead is left to go.
    /// Returns false if the backend stopped first.
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

  // The others' rates depend on the number of flows only where the root is limited.
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
