// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/data/token_batch.hpp>
#include <roundpipe/io/token_documents.hpp>
#include <roundpipe/model/batch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE void TokenBatch::reset(std::vector<BatchShape> shapes) {
  shapes_ = std::move(shapes);
  std::size_t positions = 0;
  for (auto const& shape : shapes_) {
    positions += static_cast<std::size_t>(shape.positions());
  }
  tokens_.resize(positions);
  labels_.resize(positions);
}

ROUNDPIPE_INLINE std::size_t TokenBatch::predictions() const noexcept {
  return labels_.size() -
         static_cast<std::size_t>(std::count(labels_.begin(), labels_.end(), ignored_label));
}

ROUNDPIPE_INLINE Batch TokenBatch::view() const {
  Batch batch(shapes_);
  batch.set("tokens", tokens_);
  batch.set("labels", labels_);
  return batch;
}

}  // namespace roundpipe
