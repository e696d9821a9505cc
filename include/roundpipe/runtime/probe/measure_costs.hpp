// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Measures what the layers of a model cost.

#include <roundpipe/bubble/cost_fit.hpp>
#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/model.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/runtime/probe/layer_probe.hpp>
#include <roundpipe/system/on_own_thread.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// The times of \p layer on device 0, as \ref measure_costs takes them.
template <class Model, Backend B>
[[nodiscard]] LayerCost measure_cost(Model const& model,
                                     B& backend,
                                     ModelDescription const& description,
                                     LayerId layer,
                                     RandomOperands<B>& operands,
                                     std::size_t repetitions,
                                     double seconds) {
  using Probe = LayerProbe<Model, B>;
  DeviceId const device(0);
  auto const memory =
      backend.allocate_device(device, Probe::bytes_of(description.layers[layer.index()]));
  Probe probe(model, backend, device, description, layer, operands, memory.bytes());
  std::vector<double> forward_s;
  std::vector<double> backward_s;
  double sum_s = 0;
  probe.enqueue_passes();
  for (bool more = true; more;) {
    // As in a pipeline, the next pair is enqueued before this one ends: a device that pauses after
    // each pair is faster than one that does not.
    more = forward_s.size() < repetitions || sum_s < seconds;
    if (more) {
      probe.enqueue_passes();
    }
    auto const cost = probe.finish_passes();
    forward_s.push_back(cost.forward_s);
    backward_s.push_back(cost.backward_s);
    sum_s += forward_s.size() > 1 ? cost.forward_s + cost.backward_s : 0;
  }
  auto const settled = [](std::vector<double> const& times) {
    std::vector<double> latter(times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                               times.end());
    return median(latter).value();
  };
  LayerCost cost{settled(forward_s), settled(backward_s)};
  auto const& facts = description.layers[layer.index()];
  for (std::size_t level = 0; !facts.is_loss && level + 1 < facts.save_levels.size(); ++level) {
    cost.replay_s.push_back(probe.replay(level, std::max<std::size_t>(repetitions, 1)));
  }
  return cost;
}

}  // namespace detail

/// Measures forward and backward of every layer of \p model on device 0, and its recomputation from
/// each save level. Each layer runs once uncounted and then \p repetitions times, which tells its
/// share of a micro-batch's time: equal layers count together. Where \p seconds are given, each
/// then runs once more, for its share of them and at least \p repetitions times, the largest share
/// first. Returns the medians of the latter half of the last runs; of recomputations the means of
/// \p repetitions more.
///
/// The order matters because a device that begins to work clocks high, slows down until it is
/// settled, and recovers when it idles. The layer with the largest share lets it settle, in the
/// half of its runs that does not count, and the others find it settled. Measured on an H200, with
/// each layer for the same time: after a second, forecasts were 1.6 % too fast; after a quarter of
/// a second, behind a search of seconds in which the device idled, 2.8 to 3.8 %.
///
/// Runs only the first of equal layers, calls layers on a thread of its own, allocates memory for
/// one layer at a time and frees it again.
/// \throws Error where a layer or the backend throws; the message names the layer; as \ref
/// start_thread does.
template <class M, Backend B>
  requires Model<M, typename B::Stream>
[[nodiscard]] CostModel measure_costs(M const& model,
                                      B& backend,
                                      ModelDescription const& description,
                                      std::size_t repetitions = 3,
                                      double seconds = 0) {
  detail::RandomOperands<B> operands(backend);
  std::vector<LayerCost> costs(description.size());
  auto runs = detail::runs_of_equal_layers(model, description.size());
  auto const measure = [&](LayerRange const& run, double run_s) {
    LayerId const layer(run.first);
    detail::run_probe("measuring", description, layer, DeviceId(0), [&] {
      costs[run.first] =
          detail::measure_cost(model, backend, description, layer, operands, repetitions, run_s);
    });
  };
  auto const part_s = [&](LayerRange const& run) {  // of a micro-batch
    auto const& cost = costs[run.first];
    return static_cast<double>(run.count) * (cost.forward_s + cost.backward_s);
  };
  detail::on_own_thread([&] {
    double micro_batch_s = 0;
    for (auto const& run : runs) {
      measure(run, 0);
      micro_batch_s += part_s(run);
    }
    if (seconds > 0) {
      std::stable_sort(runs.begin(), runs.end(), [&](auto const& a, auto const& b) {
        return part_s(a) > part_s(b);
      });
      for (auto const& run : runs) {
        measure(run, seconds * part_s(run) / micro_batch_s);
      }
    }
  });
  for (auto const& run : runs) {
    std::fill_n(
        costs.begin() + static_cast<std::ptrdiff_t>(run.first), run.count, costs[run.first]);
  }
  return CostModel(std::move(costs));
}

}  // namespace roundpipe
