// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Measures what the layers of a model cost.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/model.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/runtime/probe/layer_probe.hpp>
#include <roundpipe/system/on_own_thread.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// What the layers of \p model take on one device, as \ref measure_costs says. For one thread.
template <class Model, Backend B>
class DeviceCosts {
 public:
  /// The references must outlive this.
  DeviceCosts(Model const& model,
              B& backend,
              ModelDescription const& description,
              DeviceId device,
              std::size_t repetitions)
      : model_(model),
        backend_(backend),
        description_(description),
        device_(device),
        repetitions_(repetitions),
        operands_(backend),
        runs_(runs_of_equal_layers(model, description.size())),
        sums_(description.size()) {}

  void measure(double seconds, double settling_s) {
    std::vector<double> shares(runs_.size());  // of a micro-batch, by run
    take_turn(shares, 0);
    if (seconds == 0) {
      return;
    }
    std::stable_sort(runs_.begin(), runs_.end(), [&](auto const& a, auto const& b) {
      return seconds_of(a) > seconds_of(b);
    });
    std::transform(runs_.begin(), runs_.end(), shares.begin(), [&](LayerRange const& run) {
      return seconds_of(run) / this->seconds();
    });
    take_turn(shares, settling_s);
    std::fill(sums_.begin(), sums_.end(), Sum{});
    for (std::size_t turn = 0; turn < turns; ++turn) {
      take_turn(shares, seconds / turns);
    }
  }

  /// Of a micro-batch.
  [[nodiscard]] double seconds() const {
    double result = 0;
    for (auto const& run : runs_) {
      result += seconds_of(run);
    }
    return result;
  }
  /// Of each layer.
  [[nodiscard]] std::vector<LayerCost> costs() const {
    std::vector<LayerCost> result(description_.size());
    for (auto const& run : runs_) {
      std::fill_n(result.begin() + static_cast<std::ptrdiff_t>(run.first),
                  run.count,
                  sums_[run.first].mean());
    }
    return result;
  }

 private:
  static constexpr std::size_t turns = 4;

  /// Of what a layer took, pair of passes by pair, and replay by replay.
  struct Sum {
    LayerCost cost;
    std::size_t passes = 0;
    std::size_t replays = 0;  // from each level

    [[nodiscard]] LayerCost mean() const {
      auto const part = [](double sum, std::size_t of) { return sum / static_cast<double>(of); };
      LayerCost result{part(cost.forward_s, passes), part(cost.backward_s, passes)};
      for (auto const sum_s : cost.replay_s) {
        result.replay_s.push_back(part(sum_s, replays));
      }
      return result;
    }
  };

  [[nodiscard]] double seconds_of(LayerRange const& run) const {
    auto const mean = sums_[run.first].mean();
    return static_cast<double>(run.count) * (mean.forward_s + mean.backward_s);
  }

  /// Runs each layer for its share of \p turn_s.
  void take_turn(std::span<double const> shares, double turn_s) {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      LayerId const layer(runs_[i].first);
      run_probe("measuring", description_, layer, device_, [&] { add(layer, turn_s * shares[i]); });
    }
  }

  /// Adds \c repetitions_ runs of \p layer, and more until they take \p least_s.
  void add(LayerId layer, double least_s) {
    using Probe = LayerProbe<Model, B>;
    auto const& facts = description_.layers[layer.index()];
    Probe probe(model_,
                backend_,
                device_,
                description_,
                layer,
                operands_,
                memory_of(Probe::bytes_of(facts)));
    auto& sum = sums_[layer.index()];
    double taken_s = 0;
    probe.enqueue_passes();
    for (std::size_t run = 0; run <= repetitions_ || taken_s < least_s; ++run) {
      // As in a pipeline, the next pair is enqueued before this one ends: a device that pauses
      // after each pair is faster than one that does not.
      probe.enqueue_passes();
      auto const cost = probe.finish_passes();
      if (run == 0) {
        continue;  // the device may have paused before
      }
      sum.cost.forward_s += cost.forward_s;
      sum.cost.backward_s += cost.backward_s;
      ++sum.passes;
      taken_s += cost.forward_s + cost.backward_s;
    }
    (void)probe.finish_passes();
    if (facts.is_loss || facts.save_levels.empty()) {
      return;
    }
    sum.cost.replay_s.resize(facts.save_levels.size() - 1);
    for (std::size_t level = 0; level < sum.cost.replay_s.size(); ++level) {
      sum.cost.replay_s[level] += probe.replay(level, 1);
    }
    ++sum.replays;
  }

  /// Stays taken: a device that pauses while memory is freed clocks high again.
  [[nodiscard]] DeviceBytes memory_of(Bytes bytes) {
    if (!memory_ || memory_->bytes().size() < bytes) {
      memory_.reset();
      memory_.emplace(backend_.allocate_device(device_, bytes));
    }
    return memory_->bytes();
  }

  Model const& model_;
  B& backend_;
  ModelDescription const& description_;
  DeviceId device_;
  std::size_t repetitions_;
  std::optional<decltype(std::declval<B&>().allocate_device(DeviceId(0), Bytes{}))> memory_;
  RandomOperands<B> operands_;
  std::vector<LayerRange> runs_;
  std::vector<Sum> sums_;  // by layer; only the first of each run has one
};

}  // namespace detail

/// Measures forward and backward of every layer of \p model on \p devices devices at once, and its
/// recomputation from each save level. Returns what the slowest device takes: a round lasts until
/// that one is done. Each layer runs \p repetitions times, which tells its share of a micro-batch's
/// time: equal layers count together. Where \p seconds are given, these runs do not count. The
/// layers then take turns, the largest share first; in each turn, a layer runs for its share of the
/// turn's time, at least \p repetitions times. A turn of \p settling_s seconds does not count, the
/// next ones, of \p seconds together, do. Costs are the means of all that counts.
///
/// A device that begins to work clocks high for seconds when it is cold, and for half a second when
/// it has just worked. Then its clock swings, because its power swings around the limit: on an H100
/// a product took 1.55 to 1.9 ms, with a period of a second, and 1.65 in the end. So neither a
/// short run nor a median tells what training will take, but a mean over two seconds does, in which
/// the device hardly pauses: with 0.1 s of rest between layers, an H100 clocked 5 % higher than in
/// training.
///
/// Runs only the first of equal layers, calls layers on threads of its own, takes memory for the
/// largest layer on each device and frees it again.
/// \throws Error where a layer or the backend throws; the message names the layer; as \ref
/// start_thread does.
template <class M, Backend B>
  requires Model<M, typename B::Stream>
[[nodiscard]] CostModel measure_costs(M const& model,
                                      B& backend,
                                      ModelDescription const& description,
                                      std::size_t devices = 1,
                                      std::size_t repetitions = 3,
                                      double seconds = 0,
                                      double settling_s = 0) {
  std::vector<detail::DeviceCosts<M, B>> measured;
  measured.reserve(devices);
  for (std::size_t d = 0; d < devices; ++d) {
    measured.emplace_back(model, backend, description, DeviceId(d), repetitions);
  }
  detail::on_own_threads(devices, [&](std::size_t d) { measured[d].measure(seconds, settling_s); });
  return CostModel(
      std::max_element(measured.begin(), measured.end(), [](auto const& a, auto const& b) {
        return a.seconds() < b.seconds();
      })->costs());
}

}  // namespace roundpipe
