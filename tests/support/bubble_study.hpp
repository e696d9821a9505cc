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

/// A file of tests/data/. \throws std::runtime_error when it is not there.
inline nlohmann::json read_test_data(std::string const& name) {
  auto const path = std::filesystem::path(__FILE__).parent_path().parent_path() / "data" / name;
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("cannot open " + path.string());
  }
  return nlohmann::json::parse(file);
}

/// A model of the study. Times are milliseconds, where the library's are seconds.
struct StudiedModel {
  std::vector<LayerCost> costs;
  double communication = 0;  ///< What handing a boundary to another device takes.
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

/// What the study reports.
struct Study {
  std::size_t devices = 0;
  std::size_t micro_batches = 0;
  /// By model, then schedule.
  std::map<std::string, std::map<std::string, double>> bubble_percent;
};

inline Study bubble_study() {
  auto const json = read_test_data("bubbles.json");
  Study study{
      json.at("devices").get<std::size_t>(), json.at("micro_batches").get<std::size_t>(), {}};
  for (auto const& [name, model] : json.at("models").items()) {
    study.bubble_percent[name] = model.at("bubble_percent").get<std::map<std::string, double>>();
  }
  return study;
}

}  // namespace roundpipe::test
