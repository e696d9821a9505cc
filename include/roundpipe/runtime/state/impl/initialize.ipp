// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/runtime/state/initialize.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe {

ROUNDPIPE_INLINE void initialize(ParameterSpec const& spec,
                                 std::uint64_t seed,
                                 std::size_t block,
                                 std::size_t tensor,
                                 HostSpan<float> values,
                                 std::size_t first) {
  switch (spec.initial.kind) {
    case Initial::Kind::zeros:
      std::fill(values.begin(), values.end(), 0.0F);
      break;
    case Initial::Kind::ones:
      std::fill(values.begin(), values.end(), 1.0F);
      break;
    case Initial::Kind::normal: {
      if (spec.initial.deviation == 0) {  // as what is loaded over at once: no need to draw
        std::fill(values.begin(), values.end(), 0.0F);
        break;
      }
      constexpr std::uint32_t initialization = 0xFFFFFFFFU;  // no micro-batch has this number
      RandomKey const key{seed,
                          0,
                          static_cast<std::uint32_t>(block),
                          initialization,
                          static_cast<std::uint32_t>(tensor)};
      auto const hash = hash_key(key);
      for (std::size_t i = 0; i < values.size();) {
        auto const pair = normal_pair(hash, (first + i) / 2);
        for (auto at = (first + i) % 2; at < 2 && i < values.size(); ++at, ++i) {
          values[i] = spec.initial.deviation * pair[at];
        }
      }
      break;
    }
  }
}

}  // namespace roundpipe
