// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/adaws/adaws.hpp>
#include <roundpipe/adaws/adaws_problem.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/stage_passes.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace roundpipe {

namespace detail {

/// Transfers that a link has to end in the time that activations leave it.
struct AdawsSlack {
  AdawsLimit limit = AdawsLimit::everything;
  std::size_t layer = 0;
  AdawsSeconds left;      ///< The time, for each chunk.
  double transfer_s = 0;  ///< For all chunks together.
};

/// Calls \p f with every \ref AdawsSlack of one direction of the link. No copy of this direction
/// stalls compute, in however many rounds, if and only if all transfers fit.
///
/// Transfer i begins behind window i and ends in window last[i], so transfers k to j, one after
/// another, have windows k+1 to last[j]. Runs longer than a round follow from shorter ones and from
/// the whole round.
template <class F>
void for_each_adaws_slack(std::span<AdawsWindow const> windows,
                          std::size_t entries,
                          bool upload,
                          F const& f) {
  auto const count = windows.size();
  auto const window = [&](std::size_t i) -> AdawsWindow const& { return windows[i % count]; };
  auto const left = [&](std::size_t i) {
    return window(i).compute - (upload ? window(i).up : window(i).down);
  };
  auto const transfer_s = [&](std::size_t i) {
    return upload ? window(i + entries).parameter_s : window(i).gradient_s;
  };
  std::vector<std::size_t> last;  // by transfer, for two rounds
  for (std::size_t i = 0; i < 2 * count; ++i) {
    auto end = i;
    for (std::size_t taken = 0; taken < entries;) {  // windows take entries in turn
      ++end;
      taken += std::size_t{upload || window(end).has_gradients()};
    }
    last.push_back(end - 1);
  }
  auto const limit = [&](std::size_t i) {
    return runs_backward(window(i).kind)
               ? (upload ? AdawsLimit::backward_upload : AdawsLimit::backward_download)
               : (upload ? AdawsLimit::forward_upload : AdawsLimit::forward_download);
  };
  AdawsSlack round{upload ? AdawsLimit::round_upload : AdawsLimit::round_download, 0, {}, 0};
  for (std::size_t k = 0; k < count; ++k) {
    f(AdawsSlack{limit(k), window(k).layer, left(k), 0});
    round.left += left(k);
    round.transfer_s += transfer_s(k);
    AdawsSlack run;
    auto next = k + 1;
    for (auto j = k; j < k + count; ++j) {
      run.transfer_s += transfer_s(j);
      if (transfer_s(k) == 0 || transfer_s(j) == 0) {
        continue;
      }
      for (; next <= last[j]; ++next) {
        run.left += left(next);
      }
      run.limit = limit(next - 1);
      run.layer = window(next - 1).layer;
      f(run);
    }
  }
  f(round);
}

/// The next whole number.
[[nodiscard]] inline std::string rounded_up(double number) {
  return std::to_string(static_cast<std::size_t>(std::ceil(number)));
}

/// Takes \p slack into \p bound, for rounds of \p chunks.
ROUNDPIPE_INLINE void tighten_bound(AdawsBound& bound,
                                    AdawsSlack const& slack,
                                    std::size_t chunks) {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  auto const n = static_cast<double>(chunks);
  auto const& left = slack.left;
  auto const needed = slack.transfer_s == 0 && left.unsaved >= 0 ? 1
                      : left.unsaved > 0                         ? slack.transfer_s / left.unsaved
                                                                 : infinity;
  auto const spare_s = n * left.unsaved - slack.transfer_s;
  auto share = needed > n ? -infinity : infinity;
  if (left.growth < 0) {  // rounded sums do not refuse as many sequences as are needed
    share = (needed > n ? spare_s : std::max(spare_s, 0.0)) / (-n * left.growth);
  }
  if (share < bound.saved_share || (share == bound.saved_share && needed > bound.least_sequences)) {
    bound.layer = slack.layer;
  }
  bound.saved_share = std::min(bound.saved_share, share);
  bound.least_sequences = std::max(bound.least_sequences, needed);
}

/// A window beside \p save_entries entries of saves; W may be too small.
[[nodiscard]] ROUNDPIPE_INLINE AdawsSolution place_adaws_window(AdawsProblem const& problem,
                                                                std::size_t save_entries) {
  AdawsSolution solution;
  Bytes computing = 0;
  Bytes boundary = 0;
  Bytes saved = 0;
  auto const layers = problem.bytes.size();
  for (std::size_t i = 0; i < layers; ++i) {
    auto const& bytes = problem.bytes[i];
    solution.layer_bytes = std::max(
        solution.layer_bytes, align_up(bytes.parameter_bytes) + align_up(bytes.gradient_bytes));
    computing = std::max(computing, align_up(bytes.saved_bytes) + align_up(bytes.workspace_bytes));
    boundary = std::max(boundary, align_up(bytes.boundary_bytes));
    saved = std::max(saved, i + 1 < layers ? align_up(bytes.saved_bytes) : 0);
  }
  solution.reserved_bytes =
      problem.held_bytes + computing + 2 * (2 + 1) * boundary + save_entries * saved;
  auto const device = problem.device.memory_bytes;
  if (solution.reserved_bytes <= device) {
    solution.window = solution.layer_bytes > 0
                          ? (device - solution.reserved_bytes) / solution.layer_bytes
                          : layers;
  }
  auto const entries = std::min(solution.window, layers);
  solution.configuration = {
      .parameter_entries = entries, .save_entries = save_entries, .gradient_entries = entries};
  return solution;
}

/// Why \p solution, with the least that a device can reserve, has no window of two layers.
[[nodiscard]] ROUNDPIPE_INLINE Error no_adaws_window(AdawsProblem const& problem,
                                                     AdawsSolution const& solution) {
  auto const device = problem.device.memory_bytes;
  auto const message =
      "device memory: " + format_bytes(device) +
      (solution.reserved_bytes > device
           ? " have no room for one sequence, which takes B = "
           : " have room for W = " + std::to_string(solution.window) + " layers of " +
                 format_bytes(solution.layer_bytes) + " and not for two beside B = ") +
      format_bytes(solution.reserved_bytes);
  return {Errc::over_budget, message};
}

/// The largest A_save that the host has room for.
[[nodiscard]] ROUNDPIPE_INLINE double adaws_host_share(AdawsProblem const& problem,
                                                       std::size_t chunks) {
  double boundaries = 0;
  double saved = 0;
  for (std::size_t i = 0; i + 1 < problem.bytes.size(); ++i) {
    boundaries += static_cast<double>(align_up(problem.bytes[i].boundary_bytes));
    saved += static_cast<double>(align_up(problem.bytes[i].saved_bytes));
  }
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  auto const spare =
      static_cast<double>(problem.host_bytes) / static_cast<double>(chunks) - boundaries;
  return saved > 0 ? spare / saved : spare < 0 ? -infinity : infinity;
}

/// \p solution, which has a window, for rounds of \p chunks. Its share is negative where not even
/// A_save = 0 works.
[[nodiscard]] ROUNDPIPE_INLINE AdawsSolution adaws_of_chunks(AdawsSolution solution,
                                                             AdawsProblem const& problem,
                                                             std::span<AdawsWindow const> windows,
                                                             std::size_t chunks) {
  auto& chosen = solution.configuration;
  chosen.rounds = problem.sequences / chunks;
  chosen.chunks = chunks;
  auto const bound = [&](AdawsLimit limit) -> AdawsBound& {
    return solution.bounds[static_cast<std::size_t>(limit)];
  };
  bound(AdawsLimit::everything).saved_share = 1;
  if (chosen.save_entries == 0) {
    bound(AdawsLimit::device_memory).saved_share = 0;
  }
  bound(AdawsLimit::host_memory).saved_share = adaws_host_share(problem, chunks);
  auto const take = [&](AdawsSlack const& slack) {
    tighten_bound(bound(slack.limit), slack, chunks);
  };
  for_each_adaws_slack(windows, chosen.parameter_entries, true, take);
  for_each_adaws_slack(windows, chosen.gradient_entries, false, take);
  chosen.saved_share = solution.bound(solution.binding()).saved_share;
  return solution;
}

/// Where nothing works, rounds that hide their copies come first: then it is the host that refuses.
[[nodiscard]] ROUNDPIPE_INLINE bool is_better_adaws(AdawsSolution const& a,
                                                    AdawsSolution const& b) {
  auto const rank = [](AdawsSolution const& s) {
    auto const& chosen = s.configuration;
    auto const hides_copies = static_cast<double>(chosen.chunks) >= s.least_sequences();
    return std::tuple(hides_copies, chosen.saved_share, chosen.chunks);
  };
  return rank(a) > rank(b);
}

/// Why \p best, whose share is negative, does not work.
[[nodiscard]] ROUNDPIPE_INLINE Error adaws_refusal(AdawsProblem const& problem,
                                                   AdawsSolution const& best) {
  auto const limit = best.binding();
  auto const& bound = best.bound(limit);
  if (limit == AdawsLimit::host_memory) {
    return {Errc::over_budget,
            "host memory: " + format_bytes(problem.host_bytes) +
                " have no room for the boundaries of a round of " +
                std::to_string(best.configuration.chunks) +
                " sequences, and no smaller round hides its copies"};
  }
  std::string message = to_string(limit);
  if (limit != AdawsLimit::round_upload && limit != AdawsLimit::round_download) {
    message += ", first for layer " + std::to_string(bound.layer) + ',';
  }
  message += std::isinf(bound.least_sequences)
                 ? " stall compute with any number of sequences; join layers that compute little "
                   "with their neighbours"
                 : " stall compute in rounds of fewer than " + rounded_up(bound.least_sequences) +
                       " sequences; the batch has " + std::to_string(problem.sequences);
  return {Errc::invalid_argument, message};
}

}  // namespace detail

ROUNDPIPE_INLINE char const* to_string(AdawsLimit limit) noexcept {
  constexpr char const* names[adaws_limit_count] = {"nothing",
                                                    "uploads in forward windows",
                                                    "downloads in forward windows",
                                                    "uploads in backward windows",
                                                    "downloads in backward windows",
                                                    "uploads of a round",
                                                    "downloads of a round",
                                                    "device memory",
                                                    "host memory"};
  return names[static_cast<std::size_t>(limit)];
}

ROUNDPIPE_INLINE AdawsLimit AdawsSolution::binding() const noexcept {
  auto const least =
      std::min_element(bounds.begin(), bounds.end(), [](AdawsBound const& a, AdawsBound const& b) {
        return a.saved_share < b.saved_share;
      });
  return static_cast<AdawsLimit>(least - bounds.begin());
}

ROUNDPIPE_INLINE double AdawsSolution::least_sequences() const noexcept {
  double least = 1;
  for (auto const& bound : bounds) {
    least = std::max(least, bound.least_sequences);
  }
  return least;
}

ROUNDPIPE_INLINE std::string to_string(AdawsSolution const& solution) {
  return to_string(solution.configuration) + "; W " + std::to_string(solution.window) +
         ", chunks at least " + detail::rounded_up(solution.least_sequences()) +
         "; A_save is limited by " + to_string(solution.binding());
}

ROUNDPIPE_INLINE AdawsSolution solve_adaws(AdawsProblem const& problem) {
  auto const windows = adaws_windows(problem);
  std::optional<AdawsSolution> best;
  for (auto const save_entries : {std::size_t{0}, std::size_t{2}}) {
    auto const placed = detail::place_adaws_window(problem, save_entries);
    if (placed.window < 2 && save_entries == 0) {
      throw detail::no_adaws_window(problem, placed);
    }
    if (placed.window < 2) {
      break;
    }
    for (std::size_t chunks = 1; chunks <= problem.sequences; ++chunks) {
      if (problem.sequences % chunks == 0) {
        auto const candidate = detail::adaws_of_chunks(placed, problem, windows, chunks);
        if (!best || detail::is_better_adaws(candidate, *best)) {
          best = candidate;
        }
      }
    }
  }
  if (best->configuration.saved_share < 0) {
    throw detail::adaws_refusal(problem, *best);
  }
  return *best;
}

}  // namespace roundpipe
