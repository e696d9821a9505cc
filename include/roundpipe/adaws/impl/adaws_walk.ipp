// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/adaws/adaws_problem.hpp>
#include <roundpipe/adaws/adaws_walk.hpp>
#include <roundpipe/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace roundpipe {

namespace detail {

/// The transfers of one direction, one after another.
class AdawsLink {
 public:
  /// Another transfer waits for the link.
  void add(double seconds) { due_s_.push_back((due_s_.empty() ? 0 : due_s_.back()) + seconds); }
  /// For how long transfer \p i keeps the link busy yet.
  [[nodiscard]] double missing_s(std::size_t i) const { return std::max(due_s_[i] - sent_s_, 0.0); }
  /// Time in which no activation is on the link.
  void advance(double seconds) {
    sent_s_ = std::min(sent_s_ + seconds, due_s_.empty() ? 0 : due_s_.back());
  }

 private:
  std::vector<double> due_s_;  // by transfer: the work of the link up to its end
  double sent_s_ = 0;          // the work that is done
};

}  // namespace detail

ROUNDPIPE_INLINE AdawsWalk walk_adaws(AdawsProblem const& problem,
                                      AdawsConfiguration const& configuration) {
  require(configuration.chunks >= 1 && configuration.parameter_entries >= 1 &&
              configuration.gradient_entries >= 1,
          Errc::invalid_argument,
          "a round has chunks, and the rings of parameters and gradients have entries");
  auto const windows = adaws_windows(problem);
  auto const chunks = static_cast<double>(configuration.chunks);
  auto const at = [&](AdawsSeconds const& of_chunk) {
    return chunks * of_chunk.at(configuration.saved_share);
  };
  detail::AdawsLink up;
  detail::AdawsLink down;
  AdawsWalk walk;
  std::size_t gradients = 0;  // windows that had some
  for (std::size_t i = 0; i < configuration.rounds * windows.size(); ++i) {
    auto const& window = windows[i % windows.size()];
    double wait_s = 0;
    if (i >= configuration.parameter_entries) {
      wait_s = up.missing_s(i - configuration.parameter_entries);
    }
    if (window.has_gradients() && gradients >= configuration.gradient_entries) {
      wait_s = std::max(wait_s, down.missing_s(gradients - configuration.gradient_entries));
    }
    up.advance(wait_s);
    down.advance(wait_s);
    auto const compute_s = at(window.compute);
    auto const window_s = std::max({compute_s, at(window.up), at(window.down)});
    up.advance(window_s - at(window.up));
    down.advance(window_s - at(window.down));
    walk.seconds += wait_s + window_s;
    walk.stalled_s += wait_s + window_s - compute_s;
    up.add(windows[(i + configuration.parameter_entries) % windows.size()].parameter_s);
    if (window.has_gradients()) {
      down.add(window.gradient_s);
      ++gradients;
    }
  }
  return walk;
}

}  // namespace roundpipe
