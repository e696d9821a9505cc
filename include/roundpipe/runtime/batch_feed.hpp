// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Brings a caller's batch to the memory that uploads read.

#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/state/batch_staging.hpp>
#include <roundpipe/runtime/state/host_arena.hpp>

#include <cstddef>
#include <utility>

namespace roundpipe {

/// A batch that was checked. It reads the caller's memory.
struct SlicedBatch {
  BatchSlices slices;
  double gradient_scale = 1;  ///< One over the terms of the batch's loss.
};

/// \throws Error (invalid_argument) unless \p batch has the micro-batches of one call.
void require_call_size(Batch const& batch, std::size_t micro_batches_per_round, std::size_t rounds);

/// Takes the host memory that \p micro_batches micro-batches of \p call are copied from and to.
void take_staging(CallData& call,
                  std::size_t micro_batches,
                  Bytes batch_bytes,
                  Bytes result_bytes,
                  TakeHostMemory const& take);

/// Checks batches for \p Model and stages them. For one thread.
template <class Model>
class BatchFeed {
 public:
  /// \p model must outlive this.
  BatchFeed(Model const& model, BatchShape capacity) : model_(model), shapes_(model, capacity) {}

  /// The model at its capacity.
  [[nodiscard]] ShapedModel const& capacity() const noexcept { return shapes_.capacity(); }
  /// The model at \p shape. \throws Error as \ref ShapeCache does.
  [[nodiscard]] ShapedModel const& at(BatchShape shape) { return shapes_.at(shape); }

  /// Checks \p batch and finds its micro-batches; copies nothing.
  /// \throws Error (invalid_argument) when it does not fit the model.
  [[nodiscard]] SlicedBatch slice(Batch const& batch) {
    auto slices = slice_batch(
        batch, [this](BatchShape shape) -> BatchLayout const& { return shapes_.at(shape).batch; });
    auto const terms = count_loss_terms(model_, batch, capacity().batch, slices);
    return {std::move(slices), gradient_scale_of(terms)};
  }

  /// Copies \p count micro-batches from number \p first on to the staging of \p call: of those of
  /// all its ranks, the rank's.
  void stage(Batch const& batch,
             SlicedBatch const& sliced,
             std::size_t first,
             std::size_t count,
             CallData& call) {
    call.shapes.clear();
    for (std::size_t m = 0; m < count; ++m) {
      auto const from = first + call.number_of(m);
      auto const& shaped = shapes_.at(batch.shape(from));
      call.shapes.push_back(&shaped);
      stage_tensors(sliced.slices[from], shaped.batch.tensors, call.batch[m]);
    }
  }

 private:
  Model const& model_;
  ShapeCache<Model> shapes_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/batch_feed.ipp>
#endif
