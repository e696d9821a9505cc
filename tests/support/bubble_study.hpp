// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The measured costs of five models, and the bubbles that a published study reports for
/// three of them (RoundPipe, arXiv:2604.27085, figure 15): tests/data/.

#include <roundpipe/concepts/partition_policy.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace roundpipe::test {

/// A file of tests/data/. \throws std::runtime_error if it is missing.
inline nlohmann::json read_test_data(std::string const& name) {
  auto const path = std::filesystem::path(__FILE__).parent_path().parent_path() / "data" / name;
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("cannot open " + path.string());
  }
  return nlohmann::json::parse(file);
}

/// A model of the study. Times are in milliseconds, where the library uses seconds.
struct StudiedModel {
  std::vector<LayerCost> costs;
  double communication = 0;  ///< The time to hand a boundary to another device.
};

/// \param name as in `costs_NAME.json`
inline StudiedModel studied_model(std::string const& name) {
  auto const json = read_test_data("costs_" + name + ".json");
  StudiedModel model{{}, json.at("communication_ms").get<double>()};
  for (auto const& layer : json.at("layers")) {
    model.costs.push_back(
        {layer.at("forward_ms").get<double>(), layer.at("backward_ms").get<double>()});
  }
  return model;
}

/// The study's results for a model.
struct StudiedBubbles {
  std::map<std::string, double> percent;  ///< For each schedule.
  Partition partition;                    ///< RoundPipe's.
  double makespan = 0;                    ///< RoundPipe's, for a synchronous call; milliseconds.
};

struct Study {
  std::size_t devices = 0;
  std::size_t micro_batches_per_call = 0;
  std::size_t micro_batches_per_round = 0;
  std::map<std::string, StudiedBubbles> models;
};

inline Study bubble_study() {
  auto const json = read_test_data("bubbles.json");
  auto const count = [](nlohmann::json const& value) { return value.get<std::size_t>(); };
  Study study{count(json.at("devices")),
              count(json.at("micro_batches")),
              count(json.at("micro_batches_per_round")),
              {}};
  for (auto const& [name, model] : json.at("models").items()) {
    auto& studied = study.models[name];
    model.at("bubble_percent").get_to(studied.percent);
    model.at("roundpipe_makespan_ms").get_to(studied.makespan);
    std::size_t first = 0;
    for (auto const& layers : model.at("forward_stages")) {
      studied.partition.forward.push_back({first, count(layers)});
      first += count(layers);
    }
    first += count(model.at("backward_stages").at(0));  // the fused stage holds the last layers
    for (auto const& layers : model.at("backward_stages")) {
      first -= count(layers);
      studied.partition.backward.push_back({first, count(layers)});
    }
  }
  return study;
}

}  // namespace roundpipe::test
