// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Which tensors of a state a snapshot holds, in which files, and which parts of them which
/// rank writes.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/model/block_shards.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/hash_list.hpp>
#include <roundpipe/snapshots/snapshot_manifest.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// What a snapshot holds of the parameters.
struct SnapshotFormat {
  /// What the weights of a parameter are called in "model.safetensors"; without a function, as the
  /// parameter. With a checkpoint's names (`TensorNames::theirs`) other programs find them.
  std::function<std::string(std::string const& parameter)> tensor_name{};
  /// Whether it holds the weights of frozen parameters. Without them a snapshot of adapters is
  /// small: it holds their type, shape and hash, and is loaded into a trainer that has the same
  /// ones already (see \ref Snapshot::state).
  bool stores_frozen = true;
};

namespace detail {

/// Calls `f(file, name, tensor)` with each tensor of \p parameter that the snapshot \p said of it
/// holds. \p is_stale: see \ref TrainingPosition::is_stale.
template <class F>
void for_each_stored_tensor(ParameterState const& parameter,
                            SnapshotParameter const& said,
                            bool is_stale,
                            F&& f) {
  if (said.base) {
    return;
  }
  f(snapshot_files::weights, said.tensor, parameter.weights);
  for (std::size_t s = 0; s < said.states; ++s) {
    f(snapshot_files::optimizer, state_tensor_name(parameter.name, s), parameter.optimizer[s]);
  }
  if (!parameter.frozen && is_stale) {
    f(snapshot_files::visible, parameter.name, parameter.visible);
  }
}

/// What a snapshot says of \p parameter; the hash of one that it does not hold is still missing.
[[nodiscard]] inline SnapshotParameter described(ParameterState const& parameter,
                                                 SnapshotFormat const& format) {
  auto const& name = parameter.name;
  SnapshotParameter said{.name = name, .tensor = {}, .frozen = parameter.frozen};
  if (parameter.frozen && !format.stores_frozen) {
    auto const& own = parameter.weights;
    said.base = BaseParameter{tensor_info({name, own.shape, own.dtype}), {}};
  } else {
    said.states = parameter.optimizer.size();
    said.tensor = format.tensor_name ? format.tensor_name(name) : name;
  }
  return said;
}

/// The parameters of \p state, those first that an update overwrites last: a backward begins with
/// the last layer, and nobody waits for frozen parameters.
[[nodiscard]] inline std::vector<std::size_t> reversed_write_order(TrainingState const& state) {
  std::vector<std::size_t> order(state.parameters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_partition(order, [&](std::size_t i) { return state.parameters[i].frozen; });
  return order;
}

/// Nearly equal parts of \p size elements for \p ranks ranks, cut where blocks may be cut.
[[nodiscard]] inline std::vector<ElementRange> equal_parts(std::size_t size, std::size_t ranks) {
  std::vector<ElementRange> parts;
  std::size_t begin = 0;
  for (std::size_t r = 1; r <= ranks; ++r) {
    auto const end = r == ranks ? size : size / ranks * r / shard_grain * shard_grain;
    parts.push_back({begin, end});
    begin = end;
  }
  return parts;
}

/// What rank \p rank of \p ranks writes of \p state, its own: of a parameter that each rank has in
/// whole, an equal part.
/// \throws Error (invalid_argument) for the state of one of another number of ranks.
[[nodiscard]] inline TrainingState written_share(TrainingState state,
                                                 SnapshotFormat const& format,
                                                 std::size_t rank,
                                                 std::size_t ranks) {
  for (auto& parameter : state.parameters) {
    if (!parameter.parts.empty() && parameter.parts.size() != ranks) {
      throw Error(Errc::invalid_argument,
                  "the state is that of one of " + std::to_string(parameter.parts.size()) +
                      " ranks, but " + std::to_string(ranks) + (ranks == 1 ? " writes" : " write") +
                      " the snapshot; SnapshotWriterOptions::group is the pipeline's group");
    }
    bool const is_base = parameter.frozen && !format.stores_frozen;  // hashed in whole
    if (ranks == 1 || is_base || !parameter.parts.empty()) {
      continue;
    }
    parameter.parts = equal_parts(parameter.weights.shape.size(), ranks);
    auto const [begin, end] = parameter.parts[rank];
    auto const narrow_to_part = [begin = begin, end = end](HostTensor& tensor) {
      auto const bytes = size_of(tensor.dtype);
      tensor.bytes = tensor.bytes.subspan(begin * bytes, (end - begin) * bytes);
    };
    narrow_to_part(parameter.weights);
    std::ranges::for_each(parameter.optimizer, narrow_to_part);
    if (!parameter.frozen) {
      narrow_to_part(parameter.visible);
    }
  }
  return state;
}

}  // namespace detail

}  // namespace roundpipe
