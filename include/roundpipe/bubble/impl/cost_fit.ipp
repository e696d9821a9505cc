// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/bubble/cost_fit.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/median.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace roundpipe {

namespace detail {

/// The measured times of one pass of a layer: those of a round's first micro-batch, of its last
/// one, and of the others. The first backward clears sums, the last one rounds them.
class PassSamples {
 public:
  void add(TimelineEntry const& entry, MicroBatchId last) {
    auto const place = entry.micro_batch == last ? 2U : entry.micro_batch.value() > 0 ? 1U : 0U;
    seconds_[place].push_back(entry.seconds());
  }

  /// The mean over the micro-batches, each of which takes the median of its place; none without
  /// measurements.
  [[nodiscard]] std::optional<double> usual() {
    double sum_s = 0;
    std::size_t count = 0;
    for (auto& seconds : seconds_) {
      sum_s += median(seconds).value_or(0) * static_cast<double>(seconds.size());
      count += seconds.size();
    }
    return count > 0 ? std::optional(sum_s / static_cast<double>(count)) : std::nullopt;
  }

 private:
  std::array<std::vector<double>, 3> seconds_;
};

/// The measured times of one layer, by pass.
struct LayerSamples {
  PassSamples forward;
  PassSamples recompute;
  std::vector<PassSamples> replay;  ///< By save level: recomputations without output.
  PassSamples backward;
  PassSamples weight_gradient;  ///< Of split backwards; `backward` has the other half.
};

/// \p known, with measured times in place of its own, of rounds of \p micro_batches micro-batches.
[[nodiscard]] ROUNDPIPE_INLINE LayerCost refit(LayerCost const& known,
                                               LayerSamples& samples,
                                               std::size_t micro_batches) {
  auto fitted = known;
  auto const forward_s = samples.forward.usual();
  auto const recompute_s = samples.recompute.usual();
  if (forward_s) {
    fitted.forward_s = *forward_s;
    if (recompute_s) {
      fitted.recompute_s = *recompute_s;
    }
  } else if (recompute_s) {
    // Its saving forward is its first forward: in the fused stage, or where all saves are
    // offloaded.
    fitted.forward_s = *recompute_s;
  }
  if (!(forward_s && recompute_s) && known.recompute_s && known.forward_s > 0) {
    fitted.recompute_s = *known.recompute_s * fitted.forward_s / known.forward_s;
  }
  fitted.replay_s.resize(std::max(fitted.replay_s.size(), samples.replay.size()),
                         fitted.recomputing_s());
  for (std::size_t level = 0; level < fitted.replay_s.size(); ++level) {
    if (level < known.replay_s.size() && known.forward_s > 0) {
      fitted.replay_s[level] *= fitted.forward_s / known.forward_s;
    }
    if (level < samples.replay.size()) {
      fitted.replay_s[level] = samples.replay[level].usual().value_or(fitted.replay_s[level]);
    }
  }
  if (auto const backward_s = samples.backward.usual()) {
    auto const sums_s = known.round_s / static_cast<double>(micro_batches);
    auto const usual_s = *backward_s + samples.weight_gradient.usual().value_or(0);
    fitted.backward_s = std::max(usual_s - sums_s, 0.0);
  }
  return fitted;
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<LayerCost> fit_costs(std::span<LayerCost const> known,
                                                  Timeline const& timeline) {
  auto const is_pass = [](TimelineEntry const& entry) {
    return entry.lane.kind == LaneKind::compute;
  };
  MicroBatchId last(0);
  for (auto const& entry : timeline) {
    if (is_pass(entry) && entry.micro_batch.valid()) {
      last = std::max(last, entry.micro_batch);
    }
  }
  std::vector<detail::LayerSamples> samples(known.size());
  for (auto const& entry : timeline) {
    if (!is_pass(entry)) {
      continue;
    }
    require(entry.layer.valid() && entry.layer.index() < known.size(),
            Errc::invalid_argument,
            "a timeline has a layer without a known cost");
    auto& layer = samples[entry.layer.index()];
    switch (entry.kind) {
      case ActionKind::forward:
        layer.forward.add(entry, last);
        break;
      case ActionKind::recompute:
        if (entry.hands_on_output) {
          layer.recompute.add(entry, last);
        } else {
          layer.replay.resize(std::max(layer.replay.size(), entry.save_level + 1));
          layer.replay[entry.save_level].add(entry, last);
        }
        break;
      case ActionKind::backward:
      case ActionKind::input_gradient:
        layer.backward.add(entry, last);
        break;
      case ActionKind::weight_gradient:
        layer.weight_gradient.add(entry, last);
        break;
      default:
        break;
    }
  }
  std::vector<LayerCost> fitted;
  for (std::size_t i = 0; i < known.size(); ++i) {
    fitted.push_back(detail::refit(known[i], samples[i], last.index() + 1));
  }
  return fitted;
}

ROUNDPIPE_INLINE std::vector<double> fit_device_speeds(Timeline const& timeline) {
  struct Times {
    std::vector<double> all;
    std::map<std::size_t, std::vector<double>> of_device;
  };
  std::map<std::tuple<LayerId, ActionKind, bool, std::size_t>, Times> passes;
  for (auto const& entry : timeline) {
    if (entry.lane.kind == LaneKind::compute) {
      auto& pass = passes[{entry.layer, entry.kind, entry.hands_on_output, entry.save_level}];
      pass.all.push_back(entry.seconds());
      pass.of_device[entry.lane.device.index()].push_back(entry.seconds());
    }
  }
  std::vector<double> usual_s(timeline.devices);
  std::vector<double> own_s(timeline.devices);
  for (auto& [pass, times] : passes) {
    auto const usual = detail::median(times.all).value();
    for (auto& [device, own] : times.of_device) {
      auto const count = static_cast<double>(own.size());
      usual_s[device] += count * usual;
      own_s[device] += count * detail::median(own).value();
    }
  }
  std::vector<double> speeds;
  for (std::size_t device = 0; device < timeline.devices; ++device) {
    speeds.push_back(own_s[device] > 0 ? usual_s[device] / own_s[device] : 1);
  }
  return speeds;
}

ROUNDPIPE_INLINE std::vector<double> fit_step_seconds(std::size_t blocks,
                                                      Timeline const& timeline) {
  std::vector<std::vector<double>> samples(blocks);
  for (auto const& entry : timeline) {
    if (entry.kind == ActionKind::optimizer_step) {
      require(entry.block.index() < blocks,
              Errc::invalid_argument,
              "a timeline updates a block that the model does not have");
      samples[entry.block.index()].push_back(entry.seconds());
    }
  }
  std::vector<double> result;
  for (auto& times : samples) {
    result.push_back(detail::median(times).value_or(0));
  }
  return result;
}

}  // namespace roundpipe
