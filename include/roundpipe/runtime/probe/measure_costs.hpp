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
#include <functional>
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
    for (auto const& run : runs_) {
      add(run, seconds > 0 ? 1 : repetitions_, 0);
    }
    if (seconds == 0) {
      return;
    }
    std::stable_sort(runs_.begin(), runs_.end(), [&](auto const& a, auto const& b) {
      return seconds_of(a) > seconds_of(b);
    });
    std::vector<double> shares(runs_.size());  // of a micro-batch, by run
    std::transform(runs_.begin(), runs_.end(), shares.begin(), [&](LayerRange const& run) {
      return seconds_of(run) / this->seconds();
    });
    add(runs_.front(), 1, settling_s);
    std::fill(sums_.begin(), sums_.end(), Sum{});
    for (std::size_t turn = 1; turn <= turns; ++turn) {
      for (std::size_t i = 0; i < runs_.size(); ++i) {
        auto const& sum = sums_[runs_[i].first];
        auto const due_s =
            shares[i] * seconds * static_cast<double>(turn) / turns - seconds_of(sum.cost);
        if (due_s > 0 || sum.passes == 0) {
          add(runs_[i], 1, due_s);
        }
      }
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
  static constexpr double long_s = 0.1;  // a first pair of passes counts that takes as long

  [[nodiscard]] static double seconds_of(LayerCost const& pair) {
    return pair.forward_s + pair.backward_s;
  }

  /// Of what a layer took, pair of passes by pair, and replay by replay.
  struct Sum {
    LayerCost cost;
    std::size_t passes = 0;
    std::size_t replays = 0;  // from each level

    template <class Probe>
    void add_passes(Probe& probe, std::size_t least, double least_s) {
      // As in a pipeline, a pair is enqueued before the one ahead of it ends: a device that pauses
      // after each pair is faster than one that does not.
      probe.enqueue_passes();
      probe.enqueue_passes();
      auto pair = probe.finish_passes();
      auto const first = passes;
      double added_s = 0;
      auto const add = [&] {
        cost.forward_s += pair.forward_s;
        cost.backward_s += pair.backward_s;
        added_s += seconds_of(pair);
        ++passes;
      };
      if (seconds_of(pair) >= long_s) {
        add();  // of a short one, much may be due to a pause before
      }
      while (passes - first + 1 < least || added_s + seconds_of(pair) < least_s) {
        probe.enqueue_passes();
        pair = probe.finish_passes();
        add();
      }
      pair = probe.finish_passes();
      add();
    }
    template <class Probe>
    void add_replays(Probe& probe, std::size_t levels) {
      auto const seconds = probe.replays(levels);
      cost.replay_s.resize(levels);
      std::transform(seconds.begin(),
                     seconds.end(),
                     cost.replay_s.begin(),
                     cost.replay_s.begin(),
                     std::plus<>());
      ++replays;
    }

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
    return static_cast<double>(run.count) * seconds_of(mean);
  }

  /// Adds \p least runs of the first layer of \p run, and more until they take \p least_s.
  void add(LayerRange const& run, std::size_t least, double least_s) {
    LayerId const layer(run.first);
    run_probe("measuring", description_, layer, device_, [&] {
      using Probe = LayerProbe<Model, B>;
      auto const& facts = description_.layers[layer.index()];
      Probe probe(model_,
                  backend_,
                  device_,
                  description_,
                  layer,
                  operands_,
                  memory_of(Probe::bytes_of(facts)));
      sums_[layer.index()].add_passes(probe, least, least_s);
      if (!facts.is_loss && facts.save_levels.size() > 1) {
        sums_[layer.index()].add_replays(probe, facts.save_levels.size() - 1);
      }
    });
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
/// time: equal layers count together. Where \p seconds are given, it runs once for that, and these
/// runs do not count. The layer with the largest share then runs for \p settling_s seconds, which
/// do not count either. Then layers take turns, the largest share first, for \p seconds together:
/// in each turn, a layer runs until it has had its share of the time so far. One that has had more,
/// as it takes long, waits for the next turn.
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
