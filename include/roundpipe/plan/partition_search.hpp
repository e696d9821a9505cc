// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The search behind `Partitioner`: dynamic programming for each t_max, best bound first.

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/plan/partition_objective.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// One search for the best partition of one problem.
class PartitionSearch {
 public:
  explicit PartitionSearch(PartitionProblem const& problem)
      : problem_(problem), layers_(problem.costs.size()) {
    for (auto const direction : {StageDirection::forward, StageDirection::backward}) {
      auto& seconds = table(direction).seconds;
      seconds.resize(layers_ * (layers_ + 1));
      table(direction).fits.resize(seconds.size());
      for (std::size_t first = 0; first < layers_; ++first) {
        for (auto end = first + 1; end <= layers_; ++end) {  // sums of prefixes: from left to right
          seconds[at(first, end)] = (end - 1 == first ? 0 : seconds[at(first, end - 1)]) +
                                    stage_seconds(problem.costs, direction, {end - 1, 1});
        }
      }
    }
  }

  /// The first layer that does not even fit alone; nothing when each of them does.
  [[nodiscard]] std::optional<std::size_t> misfit(StageDirection direction) {
    for (std::size_t layer = 0; layer < layers_; ++layer) {
      if (!fits(direction, layer, layer + 1)) {
        return layer;
      }
    }
    return std::nullopt;
  }

  /// The best partition; nothing when none fits.
  [[nodiscard]] std::optional<Partition> run() {
    // Any stage takes at most as long as the whole model: what does not fit then never fits.
    auto const longest = seconds(StageDirection::backward, 0, layers_);
    auto const fewest = stages_for(longest);
    if (!fewest) {
      return std::nullopt;
    }
    auto choice = *fewest;
    auto t_max = longest;
    auto best = weight(choice.stages()) * longest;
    std::map<double, std::size_t> known{{longest, choice.stages()}};  // stages by t_max
    for (auto const& candidate : candidates(choice.stages())) {  // the most promising one first
      auto const t = candidate.seconds;
      if (candidate.bound > best) {
        break;
      }
      // The longer stages may take, the fewer are needed: what is known bounds the rest.
      auto const above = known.lower_bound(t);
      if (above->first == t || weight(above->second) * t > best ||
          (above != known.begin() && std::prev(above)->second == above->second)) {
        continue;
      }
      auto const found = stages_for(t);
      known[t] = found ? found->stages() : unreachable;
      auto const value = found ? weight(found->stages()) * t : best;
      if (found && (value < best || (value == best && t < t_max))) {
        choice = *found;
        t_max = t;
        best = value;
      }
    }
    auto const first = choice.fused_first;
    Partition result{even(StageDirection::forward, first, choice.forward, t_max),
                     even(StageDirection::backward, first, choice.backward, t_max)};
    result.backward.insert(result.backward.begin(), {first, layers_ - first});
    return result;
  }

 private:
  static constexpr std::size_t unreachable = std::numeric_limits<std::size_t>::max() / 4;
  enum class Fit : std::uint8_t { unknown, no, yes };
  struct Table {
    std::vector<double> seconds;
    std::vector<Fit> fits;
  };
  struct Candidate {
    double seconds;  ///< t_max
    double bound;    ///< No partition with this t_max has a smaller objective.
  };
  struct Choice {
    std::size_t fused_first;
    std::size_t forward;   ///< How many forward stages.
    std::size_t backward;  ///< How many backward stages, without the fused one.

    [[nodiscard]] std::size_t stages() const noexcept { return forward + 1 + backward; }
  };

  [[nodiscard]] std::size_t at(std::size_t first, std::size_t end) const noexcept {
    return first * (layers_ + 1) + end;
  }
  [[nodiscard]] Table& table(StageDirection direction) noexcept {
    return direction == StageDirection::forward ? forward_ : backward_;
  }
  [[nodiscard]] double seconds(StageDirection direction, std::size_t first, std::size_t end) {
    return first == end ? 0 : table(direction).seconds[at(first, end)];
  }
  /// M S + N (N - 1)
  [[nodiscard]] double weight(std::size_t stages) const noexcept {
    auto const n = static_cast<double>(problem_.devices);
    return static_cast<double>(problem_.micro_batches) * static_cast<double>(stages) + n * (n - 1);
  }

  /// Whether these layers fit into a device; asks the problem once for each stage.
  [[nodiscard]] bool fits(StageDirection direction, std::size_t first, std::size_t end) {
    auto& fit = table(direction).fits[at(first, end)];
    if (fit == Fit::unknown) {
      fit = !problem_.fits || problem_.fits(direction, {first, end - first}) ? Fit::yes : Fit::no;
    }
    return fit == Fit::yes;
  }

  /// For each layer k: the least number of stages that cover the layers before k.
  [[nodiscard]] std::vector<std::size_t> fewest_stages(StageDirection direction, double t_max) {
    std::vector<std::size_t> fewest(layers_, unreachable);
    fewest[0] = 0;
    for (std::size_t end = 1; end < layers_; ++end) {
      for (std::size_t n = 1; n <= end && seconds(direction, end - n, end) <= t_max; ++n) {
        auto const first = end - n;
        if (fewest[first] + 1 < fewest[end] && fits(direction, first, end)) {
          fewest[end] = fewest[first] + 1;
        }
      }
    }
    return fewest;
  }

  /// The fewest stages none of which takes longer than \p t_max, with the largest fused stage.
  [[nodiscard]] std::optional<Choice> stages_for(double t_max) {
    auto const forward = fewest_stages(StageDirection::forward, t_max);
    auto const backward = fewest_stages(StageDirection::backward, t_max);
    Choice best{0, unreachable, 0};
    for (std::size_t first = 0; first < layers_; ++first) {
      Choice const choice{first, forward[first], backward[first]};
      if (choice.stages() < best.stages() &&
          seconds(StageDirection::backward, first, layers_) <= t_max &&
          fits(StageDirection::backward, first, layers_)) {
        best = choice;
      }
    }
    return best.stages() < unreachable ? std::optional{best} : std::nullopt;
  }

  /// Every t_max that a partition of at least \p fewest stages can have, the least bound first.
  [[nodiscard]] std::vector<Candidate> candidates(std::size_t fewest) {
    double slowest = 0;  // of the layers: a backward stage runs it
    for (std::size_t i = 0; i < layers_; ++i) {
      slowest = std::max(slowest, seconds(StageDirection::backward, i, i + 1));
    }
    auto times = forward_.seconds;
    times.insert(times.end(), backward_.seconds.begin(), backward_.seconds.end());
    std::erase_if(times, [&](double s) { return s < slowest; });
    std::ranges::sort(times);
    times.erase(std::ranges::unique(times).begin(), times.end());

    std::vector<Candidate> result;
    std::size_t fused_first = layers_ - 1;  // of the largest fused stage that is not too slow
    for (auto const t : times) {
      while (fused_first > 0 && seconds(StageDirection::backward, fused_first - 1, layers_) <= t) {
        --fused_first;
      }
      auto const at_least = [&](StageDirection direction) {
        auto const total = seconds(direction, 0, fused_first);
        // Sums are rounded: a bound must not claim a stage for the last digit's sake.
        return total > 0 ? static_cast<std::size_t>(std::ceil(total / t * (1 - 1e-12))) : 0;
      };
      auto const both = at_least(StageDirection::forward) + at_least(StageDirection::backward);
      result.push_back({t, weight(std::max(both + 1, fewest)) * t});
    }
    std::ranges::sort(result, {}, [](Candidate const& c) { return std::pair{c.bound, c.seconds}; });
    return result;
  }

  /// Cuts the layers before \p count into \p stages stages, in execution order, as evenly as can
  /// be: with the least sum of squared times. Of equals, forward stages become longer and backward
  /// stages shorter in execution order, for the sake of fill and drain.
  [[nodiscard]] std::vector<LayerRange> even(StageDirection direction,
                                             std::size_t count,
                                             std::size_t stages,
                                             double t_max) {
    auto const forward = direction == StageDirection::forward;
    // The next stage takes `taken` of the `left` layers that are left.
    auto const next = [&](std::size_t left, std::size_t taken) {
      return LayerRange{forward ? count - left : left - taken, taken};
    };
    struct Step {
      double squares = std::numeric_limits<double>::infinity();
      std::size_t taken = 0;
    };
    std::vector<std::vector<Step>> steps(stages + 1, std::vector<Step>(count + 1));  // by left
    steps[0][0].squares = 0;
    for (std::size_t stage = 1; stage <= stages; ++stage) {
      for (std::size_t left = 1; left <= count; ++left) {
        auto& step = steps[stage][left];
        for (std::size_t taken = 1; taken <= left; ++taken) {
          auto const range = next(left, taken);
          auto const s = seconds(direction, range.first, range.end());
          if (s > t_max) {
            break;
          }
          auto const share = s > 0 ? s / t_max : 0;
          auto const squares = share * share + steps[stage - 1][left - taken].squares;
          // Sums are rounded: what differs in the last digits only is equal.
          auto const better =
              forward ? squares < step.squares * (1 - 1e-9) : squares <= step.squares * (1 + 1e-9);
          if (better && std::isfinite(squares) && fits(direction, range.first, range.end())) {
            step = {squares, taken};
          }
        }
      }
    }
    std::vector<LayerRange> result;
    for (auto left = count; stages > 0; --stages) {
      result.push_back(next(left, steps[stages][left].taken));
      left -= result.back().count;
    }
    return result;
  }

  PartitionProblem const& problem_;
  std::size_t layers_;
  Table forward_;
  Table backward_;
};

}  // namespace roundpipe::detail
