// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

/// \file
/// \brief Batches of random tokens.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/model/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace throughput {

/// Two batches of random tokens, used in turn. They depend on the number of tokens alone, not on
/// how the batch is cut.
class RandomBatches {
 public:
  RandomBatches(std::size_t micro_batches, roundpipe::BatchShape shape, std::int64_t vocabulary)
      : micro_batches_(micro_batches), shape_(shape) {
    auto const tokens = micro_batches * static_cast<std::size_t>(shape.positions());
    for (auto& set : sets_) {
      std::uint32_t state = static_cast<std::uint32_t>(&set - sets_) + 1;
      for (auto* const list : {&set.tokens, &set.labels}) {
        list->resize(tokens);
        for (auto& token : *list) {
          state = state * 1664525U + 1013904223U;
          token = static_cast<std::int32_t>((state >> 8) % static_cast<std::uint32_t>(vocabulary));
        }
      }
    }
  }

  /// Batch \p i, which views this object's memory.
  [[nodiscard]] roundpipe::Batch operator[](std::size_t i) const {
    auto const& set = sets_[i % std::size(sets_)];
    roundpipe::Batch batch(micro_batches_, shape_);
    batch.set("tokens", set.tokens).set("labels", set.labels);
    return batch;
  }

 private:
  struct Set {
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> labels;
  };
  std::size_t micro_batches_;
  roundpipe::BatchShape shape_;
  Set sets_[2];
};

}  // namespace throughput
