// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <throughput/shapes.hpp>

#include <common/command_line.hpp>
#include <common/named_shapes.hpp>
#include <roundpipe/architectures/model_config.hpp>
#include <roundpipe/io/json.hpp>

#include <filesystem>

namespace throughput {

roundpipe::nn::TransformerConfig find_shape(std::string const& name) {
  auto const& shapes = examples::named_shapes();
  if (auto const found = shapes.find(name); found != shapes.end()) {
    return found->second.transformer;
  }
  if (!std::filesystem::exists(name)) {
    examples::refuse("--shape: '" + name + "' is no file, and none of " + examples::shape_names());
  }
  return roundpipe::read_model_config(roundpipe::read_json(name), name).transformer;
}

}  // namespace throughput
