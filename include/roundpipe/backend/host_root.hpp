// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The time that bytes take on a link, when all links of the host share a root.

#include <roundpipe/backend/host_status.hpp>
#include <roundpipe/core/bytes.hpp>

#include <algorithm>
#include <chrono>
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
    Flow(HostRoot& root, Bytes bytes, double link_rate)
        : root_(root),
          bytes_left_(static_cast<double>(bytes)),
          link_rate_(link_rate),
          limited_(std::min(link_rate, root.rate_) != unlimited) {
      if (limited_) {
        auto const lock = root_.monitor_.lock();
        root_.advance();
        root_.flows_.push_back(this);
        root_.changed();
      }
    }
    Flow(Flow const&) = delete;
    Flow& operator=(Flow const&) = delete;
    ~Flow() {
      if (limited_) {
        auto const lock = root_.monitor_.lock();
        root_.advance();
        std::erase(root_.flows_, this);
        root_.changed();
      }
    }

    /// Blocks until, at the rate of the moment, no more than \p ahead is left to go.
    /// Returns false if the backend stopped first.
    bool wait_until_left(HostClock::duration ahead) {
      if (!limited_) {
        return !root_.monitor_.stopped();
      }
      auto lock = root_.monitor_.lock();
      while (!root_.monitor_.stopped()) {
        auto const now = root_.advance();
        auto const seconds = bytes_left_ / root_.rate_of(*this);
        // A rate near 0 must not overflow the clock: an hour on, the time left is asked for again.
        auto const left = std::chrono::ceil<HostClock::duration>(
            std::chrono::duration<double>(std::min(seconds, 3600.0)));
        if (left <= ahead) {
          return true;
        }
        root_.monitor_.wait_until(lock, now + (left - ahead));
      }
      return false;
    }

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
  void changed() const noexcept {
    if (rate_ != unlimited) {
      monitor_.notify();
    }
  }

  HostClock::time_point advance() {
    auto const now = HostClock::now();
    auto const seconds = std::chrono::duration<double>(now - last_).count();
    for (auto* const flow : flows_) {
      flow->bytes_left_ = std::max(0.0, flow->bytes_left_ - seconds * rate_of(*flow));
    }
    last_ = now;
    return now;
  }

  HostMonitor monitor_;
  double rate_;
  std::vector<Flow*> flows_;
  HostClock::time_point last_ = HostClock::now();
};

}  // namespace roundpipe::detail
