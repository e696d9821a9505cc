// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "random_weights.hpp"

#include <common/described_ops.hpp>
#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/io/checkpoint_writer.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/runtime/state/initialize.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace make_tiny_checkpoint {

namespace rp = roundpipe;

std::uint64_t write_random_weights(rp::ModelConfig const& config,
                                   std::uint64_t seed,
                                   std::filesystem::path const& folder,
                                   rp::Bytes most_file_bytes,
                                   rp::WorkerPool& pool) {
  auto const type = config.dtype.value_or(rp::DType::f32);
  rp::TensorNames const names(config);
  auto const model = rp::nn::transformer<examples::DescribedOps>(config.transformer);
  auto const blocks = rp::form_blocks(rp::describe(model, {1, 1}));
  std::vector<rp::TensorInfo> tensors;
  blocks.for_each([&](rp::BlockTensor parameter) {
    auto const& name = names.theirs(blocks.name_of(parameter));
    tensors.push_back(rp::tensor_info({name, blocks.tensor(parameter).shape, type}));
  });
  rp::CheckpointWriter writer(folder, std::move(tensors), {.most_file_bytes = most_file_bytes});
  blocks.for_each([&](rp::BlockTensor parameter) {
    auto const [block, tensor] = parameter;
    auto const& spec = blocks.blocks[block.index()].specs[tensor];
    auto const& name = names.theirs(blocks.name_of(parameter));
    constexpr std::size_t grain = 16384;
    auto const fill = [&, tensor = tensor, index = block.index()](std::size_t begin,
                                                                  std::size_t end) {
      std::array<float, grain> values;
      std::array<std::byte, sizeof values> narrowed;
      for (auto first = begin; first < end; first += grain) {
        rp::HostSpan<float> const some(values.data(), std::min(grain, end - first));
        rp::initialize(spec, seed, index, tensor, some, first);
        rp::HostBytes const bytes(narrowed.data(), some.size() * rp::size_of(type));
        rp::narrow(some, type, bytes);
        writer.write(name, first * rp::size_of(type), bytes);
      }
    };
    pool.for_each_part(spec.tensor.shape.size(), grain, fill);
  });
  writer.finish();
  return blocks.parameter_count();
}

}  // namespace make_tiny_checkpoint
