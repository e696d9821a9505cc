// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE WorkingSet keep_levels(ModelDescription const& model,
                                        std::vector<std::vector<std::size_t>> const& levels,
                                        std::size_t micro_batches_per_round) {
  std::vector<std::vector<Bytes>> level_bytes;
  for (auto const& layer : model.layers) {
    level_bytes.push_back(layer.is_loss ? std::vector<Bytes>{0} : layer.save_levels);
    auto const& bytes = level_bytes.back();
    require(std::adjacent_find(bytes.begin(), bytes.end()) == bytes.end(),
            Errc::invalid_argument,
            "a save level keeps nothing that the level below does not keep");
  }
  WorkingSet set(std::move(level_bytes), micro_batches_per_round);
  for (std::size_t layer = 0; layer < levels.size(); ++layer) {
    require(levels[layer].empty() || levels[layer].size() == micro_batches_per_round,
            Errc::invalid_argument,
            "a layer has save levels for other micro-batches than those of a round");
    for (std::size_t m = 0; m < levels[layer].size(); ++m) {
      set.set_level(layer, m, levels[layer][m]);
    }
  }
  return set;
}

ROUNDPIPE_INLINE WorkingSet spread_saves(ModelDescription const& model,
                                         std::size_t count,
                                         std::size_t micro_batches_per_round) {
  auto const all = micro_batches_per_round;
  require(count <= all,
          Errc::invalid_argument,
          "a round has fewer micro-batches than the host should keep the saves of");
  std::vector<std::vector<std::size_t>> levels;
  for (auto const& layer : model.layers) {
    auto const most = layer.is_loss ? 0 : layer.save_levels.size() - 1;
    auto const shift = levels.size() * 618 * all / 1000 % all;  // the golden section a layer
    auto const before = [&](std::size_t m) { return (m * count + shift) / all; };
    auto& of_layer = levels.emplace_back();
    for (std::size_t m = 0; m < all; ++m) {
      of_layer.push_back(before(m + 1) > before(m) ? most : 0);
    }
  }
  return keep_levels(model, levels, all);
}

ROUNDPIPE_INLINE std::vector<LayerCost> average_costs(std::span<LayerCost const> costs,
                                                      WorkingSet const& working_set) {
  std::vector<LayerCost> result(costs.begin(), costs.end());
  if (working_set.checkpoints() == Checkpoints::stages) {
    return result;
  }
  auto const all = working_set.micro_batches_per_round();
  for (std::size_t i = 0; i < result.size(); ++i) {
    double sum_s = 0;
    for (std::size_t m = 0; m < all; ++m) {
      sum_s += working_set.recomputes(i, m) ? costs[i].replaying_s(working_set.level(i, m)) : 0;
    }
    result[i].recompute_s = sum_s / static_cast<double>(all);
  }
  return result;
}

ROUNDPIPE_INLINE std::vector<LayerCost> least_costs(std::span<LayerCost const> costs,
                                                    WorkingSet const& working_set) {
  std::vector<LayerCost> least;
  working_set.for_each_set([&](WorkingSet const& of_round) {
    auto averages = average_costs(costs, of_round);
    for (std::size_t i = 0; i < least.size(); ++i) {
      averages[i].recompute_s = std::min(least[i].recompute_s, averages[i].recompute_s);
    }
    least = std::move(averages);
  });
  return least;
}

}  // namespace roundpipe
