// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/digest.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/gather_parts.hpp>
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

[[nodiscard]] ROUNDPIPE_INLINE std::uint64_t digest_of(std::vector<double> const& numbers) {
  Digest digest;
  digest.add(std::as_bytes(std::span(numbers)));
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
      {"the digest of rank_shares and rank_speeds",
       detail::digest_of(options.rank_shares) ^ (1 + detail::digest_of(options.rank_speeds))},
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
  if (call.deal.ranks() == 1) {
    return mine;
  }
  std::size_t count = 0;
  std::vector<std::vector<double>> by_rank;
  std::vector<HostBytes> parts;
  for (std::size_t r = 0; r < call.deal.ranks(); ++r) {
    auto& of_rank = by_rank.emplace_back(call.deal.of(r) * call.micro_batches_per_round);
    if (r == call.rank) {
      of_rank = mine;
    }
    parts.push_back(std::as_writable_bytes(std::span(of_rank)));
    count += of_rank.size();
  }
  gather_parts(group, GroupChannel::control, parts);
  std::vector<double> losses(count);
  for (std::size_t r = 0; r < by_rank.size(); ++r) {
    for (std::size_t m = 0; m < by_rank[r].size(); ++m) {
      losses[call.number_of(m, r)] = by_rank[r][m];
    }
  }
  return losses;
}

}  // namespace roundpipe
