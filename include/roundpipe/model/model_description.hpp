// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What planning needs to know of a model, as plain data, checked for consistency.

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/model.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/layer_tensors.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace roundpipe {

/// What one layer says of itself at the planned capacity.
struct LayerFacts : LayerTables {
  Footprint footprint;
  std::vector<Bytes> save_levels;  ///< By level: 0, what each keeps, and at last all that is saved.
  FlopCount work;                  ///< Zero when the layer does not count.
  bool is_loss = false;
  bool backward_reads_parameters = true;
  Carries carries;
};

/// All layers of a model at the capacity of a micro-batch.
struct ModelDescription {
  BatchShape capacity;
  std::vector<LayerFacts> layers;

  [[nodiscard]] std::size_t size() const noexcept { return layers.size(); }
  /// "layer 3 (block)", as errors and plans name it.
  [[nodiscard]] std::string name_of(std::size_t layer) const;
};

namespace detail {

/// \ref LayerFacts::name of \p layer.
template <LayerDescription L>
[[nodiscard]] std::string name_of(L const& layer) {
  if constexpr (HasName<L>) {
    return layer.name();
  } else {
    return "layer";
  }
}

/// "layer 3 (block)".
[[nodiscard]] std::string numbered_name(std::size_t layer, std::string const& name);

/// \ref LayerFacts::save_levels of \p layer.
template <LayerDescription L>
[[nodiscard]] std::vector<Bytes> levels_of(L const& layer, BatchShape shape, Bytes saved_bytes) {
  std::vector<Bytes> levels{0};
  if constexpr (HasSaveLevels<L>) {
    std::vector<Bytes> const listed = layer.save_levels(shape);
    levels.insert(levels.end(), listed.begin(), listed.end());
  } else if (saved_bytes > 0) {
    levels.push_back(saved_bytes);
  }
  return levels;
}

}  // namespace detail

/// The tables and figures of \p layer for \p shape.
/// \throws Error what a member of the layer throws: it breaks rule 9 of \ref Layer.
template <LayerDescription L>
[[nodiscard]] LayerFacts facts_of(L const& layer, BatchShape shape) {
  LayerFacts facts;
  auto const ask = [](char const* member, auto&& answer) {
    try {
      return answer();
    } catch (...) {
      auto const error = current_error("", Errc::invalid_argument);
      throw broken_rule(
          std::string("Layer::") + member, 9, error.message(), error.code(), error.where());
    }
  };
  facts.name = detail::name_of(layer);
  facts.parameters = ask("parameters", [&]() -> ParameterTable { return layer.parameters(); });
  facts.input = ask("input", [&]() -> TensorTable { return layer.input(shape); });
  facts.boundary = ask("boundary", [&]() -> TensorTable { return layer.boundary(shape); });
  facts.footprint = ask("footprint", [&]() -> Footprint { return layer.footprint(shape); });
  facts.save_levels = ask(
      "save_levels", [&] { return detail::levels_of(layer, shape, facts.footprint.saved_bytes); });
  if constexpr (HasSideInputs<L>) {
    facts.side_inputs =
        ask("side_inputs", [&]() -> TensorTable { return layer.side_inputs(shape); });
  }
  if constexpr (HasResults<L>) {
    facts.results = ask("results", [&]() -> TensorTable { return layer.results(shape); });
  }
  if constexpr (HasWork<L>) {
    facts.work = ask("work", [&]() -> FlopCount { return layer.work(shape); });
  }
  facts.is_loss = LossLayer<L>;
  if constexpr (HasBackwardReads<L>) {
    facts.backward_reads_parameters = layer.backward_reads_parameters();
  }
  if constexpr (HasCarries<L>) {
    facts.carries = layer.carries();
  }
  return facts;
}

namespace detail {

/// \throws Error (invalid_argument) where the facts of \p layer break rule 9, 10 or 12 of \ref
/// Layer.
void check_layer(ModelDescription const& model, std::size_t layer);

/// Whether the tensors of both tables agree in shape and type; names are free.
[[nodiscard]] bool same_tensors(TensorTable const& a, TensorTable const& b);

struct DescribeLayer {
  BatchShape shape;
  std::size_t number = 0;
  template <class L>
  LayerFacts operator()(L const& layer) const {
    try {
      return facts_of(layer, shape);
    } catch (...) {
      throw current_error(numbered_name(number, name_of(layer)) + ": ", Errc::invalid_argument);
    }
  }
};

}  // namespace detail

/// Asks every layer of \p model for its tables at \p capacity and checks that they fit together.
/// \throws Error (invalid_argument) for extents below 1, for a model without layers (rule 1 of \ref
///         Model), where a layer breaks rule 9, 10 or 12 of \ref Layer, or when the last layer is
///         no loss layer or another one is; (boundary_mismatch) when a layer takes other tensors
///         than it is handed.
template <DescribedModel M>
[[nodiscard]] ModelDescription describe(M const& model, BatchShape capacity) {
  require(capacity.rows >= 1 && capacity.length >= 1,
          Errc::invalid_argument,
          "a micro-batch has at least one row and one position");
  if (model.layer_count() == 0) {
    throw broken_rule("Model::layer_count", 1, "it is 0");
  }
  ModelDescription description{capacity, {}};
  for (std::size_t i = 0; i < model.layer_count(); ++i) {
    description.layers.push_back(model.visit(LayerId(i), detail::DescribeLayer{capacity, i}));
  }
  auto const& layers = description.layers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    detail::check_layer(description, i);
    if (layers[i].is_loss != (i + 1 == layers.size())) {
      throw Error(Errc::invalid_argument,
                  description.name_of(i) + (layers[i].is_loss
                                                ? " is a loss layer, but not the model's last layer"
                                                : " is the model's last layer, but no loss layer"));
    }
    if (!layers[i].results.empty() && i + 1 != layers.size()) {
      throw Error(Errc::unsupported,
                  description.name_of(i) + " declares results, which only the last layer may");
    }
    auto const handed = i == 0 ? TensorTable{} : layers[i - 1].boundary;
    if (!detail::same_tensors(handed, layers[i].input)) {
      throw Error(Errc::boundary_mismatch,
                  description.name_of(i) + " takes " + to_string(layers[i].input) + ", but " +
                      (i == 0 ? std::string("the first layer is handed nothing: let it read side "
                                            "inputs of the batch")
                              : description.name_of(i - 1) + " hands over " + to_string(handed)));
    }
  }
  if (!layers.back().boundary.empty()) {
    throw Error(Errc::boundary_mismatch,
                description.name_of(layers.size() - 1) + " is the last layer, but hands over " +
                    to_string(layers.back().boundary));
  }
  return description;
}

/// The gradients that travel back through \p boundary: one for each floating tensor.
[[nodiscard]] TensorTable gradient_table(TensorTable const& boundary);

/// \ref TensorTable::content_bytes of \ref gradient_table, without making it.
[[nodiscard]] Bytes gradient_bytes(TensorTable const& boundary);

/// Replaces \p list by views of the gradients of \p boundary in \p block, which holds their
/// \ref gradient_table: one view a tensor. Those of integer tensors are not \c present().
void gradient_views(std::vector<DeviceTensor>& list,
                    TensorTable const& boundary,
                    DeviceBytes block);

}  // namespace roundpipe

#ifdef ROUNDPIPE_COMPILED
extern template class std::vector<roundpipe::LayerFacts>;
#endif

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/model/impl/model_description.ipp>
#endif
