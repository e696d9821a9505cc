// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Cuts a batch into its micro-batches' tensors, checks and copies them, and counts what the
/// loss sums.

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// By micro-batch, by tensor of the \ref BatchLayout: its part of the caller's memory.
using BatchSlices = std::vector<std::vector<HostTensor>>;

/// Cuts \p batch; `layout_of(shape)` returns (a reference to) the model's \ref BatchLayout at a
/// micro-batch's extents. Nothing is copied: the slices live as long as the batch's memory.
/// \throws Error (invalid_argument) when a tensor is missing, is read by no layer, or has another
///         type or another number of bytes than all micro-batches together want; the message names
///         it.
template <class LayoutOf>
[[nodiscard]] BatchSlices slice_batch(Batch const& batch, LayoutOf&& layout_of) {
  BatchSlices slices(batch.size());
  BatchLayout const& first = layout_of(batch.shape(0));
  batch.require_read(first.tensors);
  for (std::size_t t = 0; t < first.tensors.size(); ++t) {
    auto const& name = first.tensors[t].name;
    auto const whole = batch.bytes(name, first.tensors[t].dtype);
    std::size_t wanted = 0;
    for (std::size_t m = 0; m < batch.size(); ++m) {
      BatchLayout const& layout = layout_of(batch.shape(m));
      auto const& spec = layout.tensors[t];
      auto const bytes = spec.bytes();
      if (wanted + bytes <= whole.size()) {
        slices[m].push_back({whole.subspan(wanted, bytes), spec.shape, spec.dtype});
      }
      wanted += bytes;
    }
    if (wanted != whole.size()) {
      throw Error(Errc::invalid_argument,
                  "the batch's tensor '" + name + "' has " + std::to_string(whole.size()) +
                      " bytes; its " + std::to_string(batch.size()) + " micro-batches want " +
                      std::to_string(wanted));
    }
  }
  return slices;
}

/// Copies the tensors of one micro-batch to \p memory, each to its offset in \p table: the
/// \c BatchLayout::tensors at this micro-batch's extents, or at the capacity.
/// \throws Error (invalid_argument) when a tensor does not fit there.
void stage_tensors(std::span<HostTensor const> tensors, TensorTable const& table, HostBytes memory);

namespace detail {

/// The terms of one micro-batch, as layer \c number counts them.
struct CountLossTerms {
  std::size_t number;
  std::span<HostTensor const> side_inputs;
  BatchShape shape;
  template <class L>
  std::int64_t operator()(L const& layer) const {
    std::int64_t terms = 0;  // the description has refused a model that ends without a loss
    if constexpr (LossLayer<L>) {
      auto const who = [&] {
        return numbered_name(number, name_of(layer)) + ": Layer::loss_terms";
      };
      try {
        terms = layer.loss_terms(side_inputs, shape);
      } catch (...) {
        auto const error = current_error("", Errc::invalid_argument);
        throw broken_rule(who(), 13, error.message(), error.code(), error.where());
      }
      if (terms < 0 || terms > most_loss_terms) {
        throw broken_rule(who(), 13, "it is " + std::to_string(terms));
      }
    }
    return terms;
  }
};

}  // namespace detail

/// How many terms \p model's loss sums over one micro-batch.
/// \param side_inputs_of_last_layer in the order of that layer's table, for the extents \p shape.
/// \throws Error (invalid_argument) where the layer breaks rule 13 of \ref Layer.
template <class Model>
[[nodiscard]] std::int64_t count_loss_terms(Model const& model,
                                            BatchShape shape,
                                            std::span<HostTensor const> side_inputs_of_last_layer) {
  auto const last = model.layer_count() - 1;
  return model.visit(LayerId(last), detail::CountLossTerms{last, side_inputs_of_last_layer, shape});
}

/// The same summed over all micro-batches of \p batch; \p layout at any extents.
template <class Model>
[[nodiscard]] std::int64_t count_loss_terms(Model const& model,
                                            Batch const& batch,
                                            BatchLayout const& layout,
                                            BatchSlices const& slices) {
  std::int64_t terms = 0;
  std::vector<HostTensor> side_inputs;
  for (std::size_t m = 0; m < batch.size(); ++m) {
    side_inputs.clear();
    for (auto const t : layout.of_layer.back()) {
      side_inputs.push_back(slices[m][t]);
    }
    terms += count_loss_terms(model, batch.shape(m), side_inputs);
  }
  return terms;
}

/// The factor of every loss of a call whose loss sums \p terms: one over it, 0 when there is none.
[[nodiscard]] constexpr double gradient_scale_of(std::int64_t terms) noexcept {
  return terms > 0 ? 1.0 / static_cast<double>(terms) : 0.0;
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/state/impl/batch_staging.ipp>
#endif
