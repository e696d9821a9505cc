// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The peak of bytes that come and go in time.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <tuple>
#include <vector>

namespace roundpipe::detail {

/// From the begin of the first of some actions to the end of the last; none without actions.
struct Lifetime {
  double from_s = std::numeric_limits<double>::infinity();
  double until_s = -std::numeric_limits<double>::infinity();

  Lifetime() = default;
  Lifetime(double begin_s, double end_s) : from_s(begin_s), until_s(end_s) {}
  explicit Lifetime(TimelineEntry const& entry) : from_s(entry.start_s), until_s(entry.end_s) {}
  Lifetime(std::initializer_list<Lifetime> parts) {
    for (auto const& part : parts) {
      add(part);
    }
  }

  void add(Lifetime const& other) {
    from_s = std::min(from_s, other.from_s);
    until_s = std::max(until_s, other.until_s);
  }
};

/// Bytes that come and go.
class HeldBytes {
 public:
  /// The moment of a peak, and its bytes.
  struct Peak {
    double at_s = 0;
    Bytes bytes = 0;
  };

  /// What is held for no time counts for nothing.
  void hold(Lifetime const& time, Bytes bytes) {
    if (time.from_s < time.until_s) {
      changes_.emplace_back(time.from_s, true, bytes);
      changes_.emplace_back(time.until_s, false, bytes);
    }
  }
  /// The first moment at which most is held. Bytes that leave at the moment at which others arrive
  /// make room for them.
  [[nodiscard]] Peak peak() {
    std::sort(changes_.begin(), changes_.end());
    Bytes now = 0;
    Peak most;
    for (auto const& [at_s, comes, bytes] : changes_) {
      now = comes ? now + bytes : now - bytes;
      if (now > most.bytes) {
        most = {at_s, now};
      }
    }
    return most;
  }
  /// What is held from \p at_s on.
  [[nodiscard]] Bytes at(double at_s) const {
    Bytes now = 0;
    for (auto const& [change_s, comes, bytes] : changes_) {
      if (change_s <= at_s) {
        now = comes ? now + bytes : now - bytes;
      }
    }
    return now;
  }

 private:
  std::vector<std::tuple<double, bool, Bytes>> changes_;
};

}  // namespace roundpipe::detail
