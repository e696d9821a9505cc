// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Small changes of a partition, tried one after another.

#include <roundpipe/concepts/partition_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// How many layers each stage has, in execution order.
struct StageSizes {
  std::vector<std::size_t> forward;
  std::vector<std::size_t> backward;  ///< The fused stage first.

  [[nodiscard]] static StageSizes of(Partition const& partition) {
    StageSizes sizes;
    for (auto const& range : partition.forward) {
      sizes.forward.push_back(range.count);
    }
    for (auto const& range : partition.backward) {
      sizes.backward.push_back(range.count);
    }
    return sizes;
  }
  /// The stages of these sizes of a model of \p layers layers.
  [[nodiscard]] Partition partition(std::size_t layers) const {
    Partition partition;
    std::size_t first = 0;
    for (auto const count : forward) {
      partition.forward.push_back({first, count});
      first += count;
    }
    auto end = layers;
    for (auto const count : backward) {
      end -= count;
      partition.backward.push_back({end, count});
    }
    return partition;
  }
};

/// \brief Moves from one partition to the next as long as that is an improvement.
///
/// `judge(sizes)` says whether a partition is better than the best so far, which it then is; all
/// sizes are positive and cover the model. The moves: a layer from any stage to any other of its
/// direction, near ones first (the stages between them shift); a stage cut in two, two neighbours
/// joined; a layer to or from the fused stage; sizes put in order.
class StageMoves {
 public:
  enum class Verdict { better, no_better, stop };
  using Judge = std::function<Verdict(StageSizes const&)>;

  StageMoves(StageSizes start, Judge judge) : best_(std::move(start)), judge_(std::move(judge)) {}

  /// Tries all moves until none of them is an improvement, or the judge stops it.
  /// \returns the best sizes.
  [[nodiscard]] StageSizes const& run() {
    do {
      moved_ = false;
      for (auto const side : {&StageSizes::forward, &StageSizes::backward}) {
        shift(side);
        cut_and_join(side);
        sort(side);
      }
      resize_fused();
    } while (moved_ && !stopped_);
    return best_;
  }

 private:
  using Side = std::vector<std::size_t> StageSizes::*;

  /// The first stage that may be changed alone: the fused one also bounds the forward stages.
  static std::size_t begin_of(Side side) { return side == &StageSizes::forward ? 0 : 1; }

  bool attempt(StageSizes sizes) {
    auto const verdict = stopped_ ? Verdict::stop : judge_(sizes);
    stopped_ = verdict == Verdict::stop;
    if (verdict != Verdict::better) {
      return false;
    }
    best_ = std::move(sizes);
    moved_ = true;
    return true;
  }

  void shift(Side side) {
    auto const begin = begin_of(side);
    for (std::size_t distance = 1; begin + distance < (best_.*side).size(); ++distance) {
      for (auto i = begin; i + distance < (best_.*side).size() && !stopped_; ++i) {
        for (auto const& [from, to] : {std::pair{i, i + distance}, std::pair{i + distance, i}}) {
          if ((best_.*side)[from] > 1) {
            auto sizes = best_;
            --(sizes.*side)[from];
            ++(sizes.*side)[to];
            attempt(std::move(sizes));
          }
        }
      }
    }
  }

  void cut_and_join(Side side) {
    for (auto i = begin_of(side); i < (best_.*side).size() && !stopped_; ++i) {
      auto const place = static_cast<std::ptrdiff_t>(i);
      for (std::size_t part = 1; part < (best_.*side)[i]; ++part) {
        auto sizes = best_;
        (sizes.*side)[i] -= part;
        (sizes.*side).insert((sizes.*side).begin() + place, part);
        if (attempt(std::move(sizes))) {
          break;
        }
      }
      if (i + 1 < (best_.*side).size()) {
        auto sizes = best_;
        (sizes.*side)[i + 1] += (sizes.*side)[i];
        (sizes.*side).erase((sizes.*side).begin() + place);
        attempt(std::move(sizes));
      }
    }
  }

  void sort(Side side) {
    auto const begin = static_cast<std::ptrdiff_t>(begin_of(side));
    for (auto const up : {true, false}) {
      auto sizes = best_;
      auto const first = (sizes.*side).begin() + begin;
      if (up) {
        std::sort(first, (sizes.*side).end());
      } else {
        std::sort(first, (sizes.*side).end(), std::greater<>{});
      }
      if (sizes.*side != best_.*side) {
        attempt(std::move(sizes));
      }
    }
  }

  /// A layer more or less in the fused stage, from or to the last forward and next backward stage;
  /// those may also vanish, or become stages of their own.
  void resize_fused() {
    auto const take = [](std::vector<std::size_t>& stages, std::size_t i) {
      if (--stages[i] == 0) {
        stages.erase(stages.begin() + static_cast<std::ptrdiff_t>(i));
      }
    };
    if (!best_.forward.empty()) {
      auto sizes = best_;
      ++sizes.backward[0];
      take(sizes.forward, sizes.forward.size() - 1);
      take(sizes.backward, 1);
      attempt(std::move(sizes));
    }
    for (auto const apart : {false, true}) {
      if (best_.backward[0] == 1) {
        break;
      }
      auto sizes = best_;
      --sizes.backward[0];
      if (apart || sizes.forward.empty()) {
        sizes.forward.push_back(1);
        sizes.backward.insert(sizes.backward.begin() + 1, 1);
      } else {
        ++sizes.forward.back();
        ++sizes.backward[1];
      }
      attempt(std::move(sizes));
    }
  }

  StageSizes best_;
  Judge judge_;
  bool moved_ = false;
  bool stopped_ = false;
};

}  // namespace roundpipe::detail
