// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/layer_tensors.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/testing/table_check.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace roundpipe::testing::detail {

ROUNDPIPE_INLINE std::vector<std::string> compare_tables(LayerFacts const& capacity,
                                                         LayerFacts const& smaller) {
  std::vector<std::string> findings;
  auto const compare_bytes = [&](std::string const& what, Bytes bytes, Bytes at_capacity) {
    if (bytes > at_capacity) {
      findings.push_back(what + " takes " + std::to_string(bytes) +
                         " bytes at the smaller extents, and " + std::to_string(at_capacity) +
                         " at the capacity");
    }
  };
  auto const compare = [&](char const* member, TensorTable LayerTables::* table) {
    auto const& small = smaller.*table;
    auto const& large = capacity.*table;
    auto const same = [](TensorSpec const& a, TensorSpec const& b) {
      return a.name == b.name && a.dtype == b.dtype;
    };
    if (!std::equal(small.begin(), small.end(), large.begin(), large.end(), same)) {
      findings.push_back(std::string(member) + " is " + to_string(small) +
                         " at the smaller extents, and " + to_string(large) +
                         " at the capacity: names and types must be the same");
    }
    compare_bytes(member, small.bytes(), large.bytes());
  };
  compare("input", &LayerTables::input);
  compare("boundary", &LayerTables::boundary);
  compare("side_inputs", &LayerTables::side_inputs);
  compare("results", &LayerTables::results);
  compare_bytes("saved memory", smaller.footprint.saved_bytes, capacity.footprint.saved_bytes);
  compare_bytes("workspace", smaller.footprint.workspace_bytes, capacity.footprint.workspace_bytes);
  if (smaller.save_levels.size() != capacity.save_levels.size()) {
    findings.push_back("the number of save levels depends on the extents");
  }
  return findings;
}

}  // namespace roundpipe::testing::detail
