// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The data of one call: named tensors, and the extents of each micro-batch.

#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <map>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// Views of a call's tensors. The caller owns the memory, which must live until `forward_backward`
/// or `evaluate` returns; both copy it.
class Batch {
 public:
  /// Micro-batches of these extents, all rounds of a call one after another.
  /// \throws Error (invalid_argument) when there is none, or more than \ref most_micro_batches.
  explicit Batch(std::vector<BatchShape> micro_batches);
  /// \p count micro-batches of equal extents.
  Batch(std::size_t count, BatchShape shape);

  /// Names \p values: the tensors of all micro-batches, each as its reader declares it for the
  /// micro-batch's extents, one after another without padding. \p Range is contiguous: a vector, an
  /// array, a span.
  template <class Range>
  Batch& set(std::string name, Range&& values) {
    static_assert(std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range>,
                  "the values of a batch are contiguous: a vector, an array, a span");
    static_assert(std::ranges::borrowed_range<Range>,
                  "a batch keeps a view of its values: they need a name, and to outlive the call");
    HostSpan<std::ranges::range_value_t<Range> const> const view(std::ranges::data(values),
                                                                 std::ranges::size(values));
    tensors_[std::move(name)] = {std::as_bytes(view), dtype_of<std::ranges::range_value_t<Range>>};
    return *this;
  }

  [[nodiscard]] std::size_t size() const noexcept { return shapes_.size(); }
  /// The extents of a micro-batch. \throws Error (invalid_argument) when there is no such one.
  [[nodiscard]] BatchShape shape(std::size_t micro_batch) const;

  /// The bytes named \p name, of all micro-batches.
  /// \throws Error (invalid_argument) when there are none, or of another type than \p dtype.
  [[nodiscard]] HostSpan<std::byte const> bytes(std::string const& name, DType dtype) const;

  /// \throws Error (invalid_argument) for a tensor that \p read, a model's tensors, does not have.
  void require_read(TensorTable const& read) const;

 private:
  struct Named {
    HostSpan<std::byte const> bytes;
    DType dtype = DType::f32;
  };
  std::vector<BatchShape> shapes_;
  std::map<std::string, Named> tensors_;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/batch.ipp>
#endif
