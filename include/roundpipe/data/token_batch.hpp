// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The memory of a batch of tokens and labels.

#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/model/batch.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe {

/// Owns the tensors `tokens` and `labels` of a call, both i32 [rows, length] for each micro-batch,
/// one micro-batch after another. A label is the token that its own position predicts, or \ref
/// ignored_label.
class TokenBatch {
 public:
  /// Makes room for micro-batches of \p shapes. Keeps memory that it has; values are arbitrary.
  void reset(std::vector<BatchShape> shapes);

  [[nodiscard]] std::vector<BatchShape> const& shapes() const noexcept { return shapes_; }
  [[nodiscard]] HostSpan<std::int32_t> tokens() noexcept { return tokens_; }
  [[nodiscard]] HostSpan<std::int32_t const> tokens() const noexcept { return tokens_; }
  [[nodiscard]] HostSpan<std::int32_t> labels() noexcept { return labels_; }
  [[nodiscard]] HostSpan<std::int32_t const> labels() const noexcept { return labels_; }

  /// The number of positions with a label: the terms of the loss.
  [[nodiscard]] std::size_t predictions() const noexcept;

  /// A view for `forward_backward` and `evaluate`. It lives until the next \ref reset, or as long
  /// as this object.
  /// \throws Error (invalid_argument) when there is no micro-batch.
  [[nodiscard]] Batch view() const;

 private:
  std::vector<BatchShape> shapes_;
  std::vector<std::int32_t> tokens_;
  std::vector<std::int32_t> labels_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/data/impl/token_batch.ipp>
#endif
