// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/batch.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE Batch::Batch(std::vector<BatchShape> micro_batches)
    : shapes_(std::move(micro_batches)) {
  require(!shapes_.empty(), Errc::invalid_argument, "a batch has at least one micro-batch");
  require(shapes_.size() <= most_micro_batches,
          Errc::invalid_argument,
          "a batch has at most 1048576 micro-batches");
}

ROUNDPIPE_INLINE Batch::Batch(std::size_t count, BatchShape shape)
    : Batch(std::vector<BatchShape>(std::min(count, most_micro_batches + 1), shape)) {}

ROUNDPIPE_INLINE BatchShape Batch::shape(std::size_t micro_batch) const {
  if (micro_batch >= shapes_.size()) {
    throw Error(Errc::invalid_argument,
                "the batch has " + std::to_string(shapes_.size()) + " micro-batches, not number " +
                    std::to_string(micro_batch));
  }
  return shapes_[micro_batch];
}

ROUNDPIPE_INLINE HostSpan<std::byte const> Batch::bytes(std::string const& name,
                                                        DType dtype) const {
  auto const found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw Error(Errc::invalid_argument, "the batch has no tensor named '" + name + "'");
  }
  if (found->second.dtype != dtype) {
    throw Error(Errc::invalid_argument,
                "the batch's tensor '" + name + "' is " +
                    std::string(name_of(found->second.dtype)) + ", the model reads " +
                    std::string(name_of(dtype)));
  }
  return found->second.bytes;
}

ROUNDPIPE_INLINE void Batch::require_read(TensorTable const& read) const {
  for (auto const& [name, tensor] : tensors_) {
    if (std::none_of(
            read.begin(), read.end(), [&](auto const& spec) { return spec.name == name; })) {
      throw Error(Errc::invalid_argument, "no layer reads the batch's tensor '" + name + "'");
    }
  }
}

}  // namespace roundpipe
