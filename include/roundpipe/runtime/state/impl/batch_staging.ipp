// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/runtime/state/batch_staging.hpp>

#include <cstddef>
#include <cstring>
#include <span>

namespace roundpipe {

ROUNDPIPE_INLINE void stage_tensors(std::span<HostTensor const> tensors,
                                    TensorTable const& table,
                                    HostBytes memory) {
  require(tensors.size() == table.size() && memory.size() >= table.bytes(),
          Errc::invalid_argument,
          "staging memory holds all tensors of a micro-batch");
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    auto const bytes = tensors[t].bytes;
    require(bytes.size() <= table[t].bytes(),
            Errc::invalid_argument,
            "a micro-batch's tensor is larger than its place");
    if (!bytes.empty()) {
      std::memcpy(memory.data() + table.offset(t), bytes.data(), bytes.size());
    }
  }
}

}  // namespace roundpipe
