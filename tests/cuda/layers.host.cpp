// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/language_model_head.hpp>
#include <roundpipe/nn/token_embedding.hpp>
#include <roundpipe/nn/transformer_block.hpp>
#include <support/layer_oracle.hpp>
#include <support/nn_harness.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe::test {

namespace {

/// Writes random numbers to \p narrow, and the numbers that its types hold to \p wide.
LayerValues::Lists draw(std::vector<DeviceTensor> const& narrow,
                        std::vector<DeviceTensor> const& wide) {
  static std::uint32_t name = 20260101;
  LayerValues::Lists lists;
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    if (narrow[i].present()) {
      // Products keep the size of their input; gains are close to 1.
      auto const& shape = narrow[i].shape();
      auto const matrix = shape.rank() == 2;
      auto const deviation = matrix ? 1 / std::sqrt(static_cast<double>(shape[1])) : 1.0;
      auto const gain = shape.rank() == 1;
      write_random(narrow[i], ++name, gain ? 0.3 : deviation, gain ? 1 : 0);
      write(wide[i], read(narrow[i]));
    }
    lists.push_back(read(narrow[i]));
  }
  return lists;
}

LayerValues::Lists read_all(std::vector<DeviceTensor> const& tensors) {
  LayerValues::Lists lists;
  for (auto const& tensor : tensors) {
    lists.push_back(read(tensor));
  }
  return lists;
}

template <template <class> class L, class... Arguments>
LayerValues passes(LayerCase const& c, Arguments... arguments) {
  auto wide_config = c.config;
  wide_config.storage = wide_config.parameter = DType::f64;
  using Narrow = L<nn::HostOps<float>>;
  using Wide = L<nn::HostOps<double>>;
  LayerRunner<Narrow> const narrow(Narrow(c.config, arguments...), c.shape);  // rounds the numbers
  LayerRunner<Wide> wide(Wide(wide_config, arguments...), c.shape);
  wide.call = c.call();
  auto const& from = narrow.tensors;
  auto const& to = wide.tensors;
  LayerValues values;
  values.parameters = draw(from.parameters, to.parameters);
  values.inputs = draw(from.inputs, to.inputs);
  values.output_gradients = draw(from.output_gradients, to.output_gradients);
  values.sums = draw(from.parameter_gradients, to.parameter_gradients);
  for (auto const& tensor : to.side_inputs) {
    write(tensor, c.indices);
  }
  values.loss = wide.forward(false, true);
  values.results = read_all(to.results);
  static_cast<void>(wide.forward(true));
  values.outputs = read_all(to.outputs);
  values.training_loss = wide.backward();
  values.input_gradients = read_all(to.input_gradients);
  values.parameter_gradients = read_all(to.parameter_gradients);
  return values;
}

}  // namespace

LayerValues host_passes(LayerCase const& c) {
  switch (c.kind) {
    case LayerCase::Kind::embedding:
      return passes<nn::TokenEmbedding>(c);
    case LayerCase::Kind::head:
      return passes<nn::LanguageModelHead>(c);
    default:
      return passes<nn::TransformerBlock>(c, c.kind == LayerCase::Kind::frozen_block);
  }
}

}  // namespace roundpipe::test
