// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The batches of a training, read ahead of it.

#include <roundpipe/data/dataset.hpp>
#include <roundpipe/data/prefetch.hpp>
#include <roundpipe/data/token_batch.hpp>

#include <cstdint>

namespace roundpipe {

/// \brief Reads the batches of a training on threads of its own, so that the training need not wait
/// for a disk.
///
/// ```cpp
/// BatchLoader loader(dataset, {.rows = 8, .micro_batch_rows = 2}, dataset.position());
/// for (std::size_t step = 0; step < steps; ++step) {
///   pipeline.forward_backward(loader.next().view());
///   pipeline.step();
/// }
/// auto const position = loader.position();  // from which another loader goes on
/// ```
class BatchLoader {
 public:
  /// Batches of \p cut from \p position on. \p dataset must outlive this.
  /// \throws Error (invalid_argument) when \p position is of another dataset, and as \ref Prefetch.
  BatchLoader(Dataset const& dataset,
              BatchRows const& cut,
              DataPosition const& position,
              PrefetchOptions const& options = {})
      : dataset_((dataset.require_own(position), dataset)),
        cut_(cut),
        first_row_(position.rows),
        batches_([this](auto number, auto& batch) { read(number, batch); }, 0, options) {}

  /// The next batch. It stays as it is until the next call. Waits while it is being read.
  /// \throws Error as \ref Dataset::read, for the batch at which that happened, again with every
  ///         further call.
  [[nodiscard]] TokenBatch const& next() { return batches_.next(); }

  /// The position behind the batches that \ref next has returned. Batches that were only read ahead
  /// do not count.
  [[nodiscard]] DataPosition position() const noexcept {
    return dataset_.position(first_row_ + batches_.number() * cut_.rows);
  }
  /// How often \ref next had to wait: how often the data was too slow.
  [[nodiscard]] std::uint64_t stalls() const noexcept { return batches_.stalls(); }

 private:
  void read(std::uint64_t number, TokenBatch& batch) const {
    dataset_.read(first_row_ + number * cut_.rows, cut_, batch);
  }

  Dataset const& dataset_;
  BatchRows cut_;
  std::uint64_t first_row_;
  Prefetch<TokenBatch> batches_;  // last: its threads read the members above
};

}  // namespace roundpipe
