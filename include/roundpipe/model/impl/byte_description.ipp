// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/layer_bytes.hpp>
#include <roundpipe/model/model_description.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace roundpipe {

ROUNDPIPE_INLINE ModelDescription describe_bytes(std::span<LayerBytes const> layers) {
  auto const numbers = [](Bytes bytes) {
    return static_cast<std::int64_t>(std::max<Bytes>(1, bytes / size_of(DType::bf16)));
  };
  ModelDescription model{{1, 1}, {}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    LayerFacts facts;
    facts.name = "layer";
    facts.parameters.push_back({{"parameters", {numbers(layers[i].parameter_bytes)}, DType::bf16}});
    if (i > 0) {
      facts.input = model.layers.back().boundary;
    }
    if (i + 1 < layers.size()) {
      facts.boundary.add({"boundary", {numbers(layers[i].boundary_bytes)}, DType::bf16});
    }
    facts.footprint = {layers[i].saved_bytes, layers[i].workspace_bytes};
    facts.save_levels = {0};
    if (layers[i].saved_bytes > 0) {
      facts.save_levels.push_back(layers[i].saved_bytes);
    }
    facts.is_loss = i + 1 == layers.size();
    model.layers.push_back(std::move(facts));
  }
  return model;
}

}  // namespace roundpipe
