// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>
#include <roundpipe/runtime/state/whole_updates.hpp>

#include <algorithm>
#include <cstddef>

namespace roundpipe {

ROUNDPIPE_INLINE WholeUpdates::WholeUpdates(ParameterBlocks const& blocks,
                                            StateType state_type,
                                            OptimizerNeeds const& needs)
    : parameters_(blocks.blocks.size()) {
  for (std::size_t b = 0; needs.updates_whole && b < blocks.blocks.size(); ++b) {
    auto const& block = blocks.blocks[b];
    auto& whole = parameters_[b];
    std::size_t floats = 0;
    for (std::size_t t = 0; !block.frozen && t < block.specs.size(); ++t) {
      BlockTensor const parameter{BlockId(b), t};
      auto const name = blocks.name_of(parameter);
      auto const own = block.own().of_tensor(t, block.master[t].shape.size());
      auto const is_others = block.is_sharded() && own.size() == 0;
      if (is_others || !needs.updates_whole(blocks.info_of(parameter, name))) {
        continue;
      }
      bool const keeps_declared =
          state_type == StateType::declared && block.master[t].dtype != DType::f32;
      auto const arrays = (block.host_gradient()[t].dtype != DType::f32 ? 1 : 0) +
                          (keeps_declared ? 1 + needs.state_arrays : 0);
      whole.push_back({t, floats, arrays * block.master[t].shape.size()});
      floats += whole.back().floats;
    }
    std::stable_sort(whole.begin(), whole.end(), [&](auto const& left, auto const& right) {
      return block.master[left.tensor].shape.size() > block.master[right.tensor].shape.size();
    });
    floats_ = std::max(floats_, floats);
  }
}

}  // namespace roundpipe
