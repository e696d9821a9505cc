// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "model.hpp"

#include <common/command_line.hpp>
#include <common/precision.hpp>
#include <common/weights_type.hpp>
#include <roundpipe/architectures/adapter_config.hpp>
#include <roundpipe/architectures/model_config.hpp>
#include <roundpipe/core/dtype.hpp>

#include <cstdint>
#include <string>
#include <utility>

namespace generate {

namespace rp = roundpipe;

Model open_model(Options const& o) {
  auto config = rp::read_model_config(o.model);
  auto& c = config.transformer;
  if (!o.adapter.empty()) {
    c.lora = rp::read_adapter_config(o.adapter, rp::TensorNames(config)).lora;
  }
  rp::TensorNames names(config);
  rp::CheckpointFolder checkpoint(o.model);
  c.storage = c.parameter = o.precision == "as-model" ? examples::weights_type(checkpoint, names)
                                                      : examples::type_named(o.precision);
  c.initial_deviation = 0;  // all weights come from the checkpoint
  c.frozen_parameters = {"*"};
  for (auto const token : o.prompt) {
    if (token < 0 || token >= c.vocabulary) {
      examples::refuse("--prompt-ids: token " + std::to_string(token) +
                       " is not in the vocabulary of " + std::to_string(c.vocabulary));
    }
  }
  // The last token is printed, not read.
  auto const longest = static_cast<std::int64_t>(o.prompt.size()) + o.tokens - 1;
  if (longest > config.longest_context) {
    examples::refuse("the prompt and --tokens make " + std::to_string(longest) +
                     " positions, but the model is made for " +
                     std::to_string(config.longest_context) + " (max_position_embeddings)");
  }
  return {std::move(config), std::move(names), std::move(checkpoint), {1, longest}};
}

}  // namespace generate
