// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/digest.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/rank_agreement.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// What the parameters of all ranks have in common: names, shapes, types, who trains, who shares.
[[nodiscard]] ROUNDPIPE_INLINE std::uint64_t digest_of(ParameterBlocks const& blocks) {
  std::string text;
  blocks.for_each([&](BlockTensor parameter) {
    auto const& block = blocks.blocks[parameter.block.index()];
    auto const& spec = block.master[parameter.tensor];
    text += blocks.name_of(parameter) + " " + std::to_string(spec.shape.size()) + " " +
            std::to_string(static_cast<int>(spec.dtype)) + " " + std::to_string(block.frozen) +
            " " + std::to_string(block.uses.size()) + "\n";
  });
  Digest digest;
  digest.add(std::as_bytes(std::span(text)));
  return digest.value();
}

}  // namespace detail

ROUNDPIPE_INLINE void require_same_training(AnyProcessGroup group,
                                            PipelinePlan const& plan,
                                            PipelineOptions const& options,
                                            int staleness,
                                            bool copies_parameters) {
  if (group.size() == 1) {
    return;
  }
  std::vector<std::pair<char const*, std::uint64_t>> const fields{
      {"the digest of the parameters' names, shapes and types", detail::digest_of(plan.blocks)},
      {"micro_batches_per_round", options.micro_batches_per_round},
      {"rounds", options.rounds},
      {"calls_per_step", options.calls_per_step},
      {"seed", options.seed},
      {"state_type", static_cast<std::uint64_t>(options.state_type)},
      {"the bits of clip_norm", std::bit_cast<std::uint64_t>(options.clip_norm)},
      {"loss_scale, whether there is one", options.loss_scale.has_value()},
      {"the bits of loss_scale's first value",
       std::bit_cast<std::uint64_t>(options.loss_scale ? options.loss_scale->initial : 0.0)},
      {"the staleness", static_cast<std::uint64_t>(staleness)},
      {"shard_states", options.shard_states},
      {"with shard_states, whether there are P copies", options.shard_states && copies_parameters}};
  std::vector<std::uint64_t> mine;
  for (auto const& field : fields) {
    mine.push_back(field.second);
  }
  std::vector<std::uint64_t> all(group.size() * mine.size());
  group.gather(GroupChannel::control,
               std::as_bytes(std::span(mine)),
               std::as_writable_bytes(std::span(all)));
  for (std::size_t r = 0; r < group.size(); ++r) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (auto const found = all[r * fields.size() + f]; found != all[f]) {
        throw Error(Errc::invalid_argument,
                    "the ranks do not train the same: " + std::string(fields[f].first) + " is " +
                        std::to_string(found) + " on rank " + std::to_string(r) + " and " +
                        std::to_string(all[f]) + " on rank 0");
      }
    }
  }
}

ROUNDPIPE_INLINE std::vector<double> losses_of(AnyProcessGroup group, CallData const& call) {
  std::vector<double> mine;
  for (std::size_t m = 0; m < call.shapes.size(); ++m) {
    mine.push_back(*reinterpret_cast<double const*>(call.losses[m].data()));
  }
  if (call.ranks == 1) {
    return mine;
  }
  std::vector<double> by_rank(call.ranks * mine.size());
  group.gather(GroupChannel::control,
               std::as_bytes(std::span(mine)),
               std::as_writable_bytes(std::span(by_rank)));
  std::vector<double> losses(by_rank.size());
  for (std::size_t r = 0; r < call.ranks; ++r) {
    for (std::size_t m = 0; m < mine.size(); ++m) {
      losses[call.number_of(m, r)] = by_rank[r * mine.size() + m];
    }
  }
  return losses;
}

}  // namespace roundpipe
