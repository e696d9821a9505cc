// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A model's tables at the extents that micro-batches bring; asks for each once.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/model/batch_layout.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

/// A model at one micro-batch's extents.
struct ShapedModel {
  ModelDescription model;
  BatchLayout batch;
};

/// Describes a model once for each micro-batch shape that occurs. Only one thread at a time may use
/// it.
template <class Model>
class ShapeCache {
 public:
  /// \p model must outlive the cache. \throws Error as \ref describe and \ref lay_out_batch do.
  ShapeCache(Model const& model, BatchShape capacity) : model_(&model), capacity_(&add(capacity)) {}
  ShapeCache(ShapeCache const&) = delete;  // capacity_ points into shaped_
  ShapeCache& operator=(ShapeCache const&) = delete;

  /// The model at its capacity.
  [[nodiscard]] ShapedModel const& capacity() const noexcept { return *capacity_; }

  /// The model at \p shape; the reference lives as long as the cache.
  /// \throws Error (invalid_argument) when \p shape does not fit into the capacity, or when a layer
  ///         wants more bytes, or other tensors, at \p shape than at capacity, which breaks rule 6
  ///         of
  ///         \ref Layer, or has another number of save levels there, which breaks rule 10.
  [[nodiscard]] ShapedModel const& at(BatchShape shape) {
    if (auto const found = shaped_.find(shape); found != shaped_.end()) {
      return found->second;
    }
    auto const& capacity = capacity_->model.capacity;
    if (!shape.fits(capacity)) {
      throw Error(Errc::invalid_argument,
                  "a micro-batch of " + to_text(shape) + " does not fit into the capacity of " +
                      to_text(capacity));
    }
    auto const& shaped = add(shape);
    try {
      check(shaped.model);
    } catch (...) {
      shaped_.erase(shape);
      throw;
    }
    return shaped;
  }

 private:
  [[nodiscard]] static std::string to_text(BatchShape shape) {
    return std::to_string(shape.rows) + " x " + std::to_string(shape.length) +
           " (rows x positions)";
  }

  ShapedModel const& add(BatchShape shape) {
    auto model = describe(*model_, shape);
    auto batch = lay_out_batch(model);
    return shaped_.insert({shape, {std::move(model), std::move(batch)}}).first->second;
  }

  /// \throws Error where a layer breaks rule 6 or 10 of \ref Layer.
  void check(ModelDescription const& model) const {
    for (std::size_t i = 0; i < model.size(); ++i) {
      auto const& here = model.layers[i];
      auto const& most = capacity_->model.layers[i];
      Asked const asked{model, i};
      check_table(asked, "input", here.input, most.input, "input");
      check_table(asked, "boundary", here.boundary, most.boundary, "boundary");
      check_carried(asked, "input", here.input, most.input, here.carries.tensors);
      check_carried(asked, "boundary", here.boundary, most.boundary, here.carries.tensors);
      check_table(asked, "side_inputs", here.side_inputs, most.side_inputs, "side inputs");
      check_table(asked, "results", here.results, most.results, "results");
      auto const& footprint = here.footprint;
      auto const& most_footprint = most.footprint;
      check_bytes(asked,
                  "footprint",
                  footprint.saved_bytes,
                  most_footprint.saved_bytes,
                  "saved activations");
      check_levels(asked, here.save_levels, most.save_levels);
      check_bytes(asked,
                  "footprint",
                  footprint.workspace_bytes,
                  most_footprint.workspace_bytes,
                  "workspace");
    }
  }

  /// Which layer was asked, at which extents.
  struct Asked {
    ModelDescription const& model;
    std::size_t layer;

    [[nodiscard]] Error broken(char const* member, int rule, std::string const& value) const {
      return broken_rule(model.name_of(layer) + ": Layer::" + member,
                         rule,
                         "at " + to_text(model.capacity) + " its " + value);
    }
  };

  static void check_table(Asked const& asked,
                          char const* member,
                          TensorTable const& here,
                          TensorTable const& most,
                          char const* what) {
    bool same = here.size() == most.size();
    for (std::size_t i = 0; same && i < here.size(); ++i) {
      same = here[i].name == most[i].name && here[i].dtype == most[i].dtype;
    }
    if (!same) {
      throw asked.broken(member,
                         6,
                         std::string(what) + " are " + to_string(here) + ", at capacity " +
                             to_string(most) + "; only the extents may differ");
    }
    check_bytes(asked, member, here.bytes(), most.bytes(), what);
  }

  /// Carried tensors lie apart from the rest of a table: each part fits by itself.
  static void check_carried(Asked const& asked,
                            char const* member,
                            TensorTable const& here,
                            TensorTable const& most,
                            std::size_t carried) {
    auto const own = here.size() - carried;
    check_bytes(asked,
                member,
                here.first(own).bytes(),
                most.first(own).bytes(),
                "tensors before the carried ones");
    for (std::size_t t = own; t < here.size(); ++t) {
      check_bytes(asked, member, here[t].bytes(), most[t].bytes(), "carried tensors");
    }
  }

  /// What a level keeps, and what it leaves, fit where those of the capacity do.
  static void check_levels(Asked const& asked,
                           std::vector<Bytes> const& here,
                           std::vector<Bytes> const& most) {
    if (here.back() == 0) {
      return;  // nothing is saved
    }
    if (here.size() != most.size()) {
      throw asked.broken("save_levels",
                         10,
                         "save levels are " + std::to_string(here.size() - 1) + ", at capacity " +
                             std::to_string(most.size() - 1));
    }
    for (std::size_t l = 0; l < here.size(); ++l) {
      check_bytes(asked, "save_levels", here[l], most[l], "save levels");
      check_bytes(
          asked, "save_levels", here.back() - here[l], most.back() - most[l], "save levels");
    }
  }

  static void check_bytes(
      Asked const& asked, char const* member, Bytes here, Bytes most, char const* what) {
    if (here > most) {
      throw asked.broken(member,
                         6,
                         std::string(what) + " take " + std::to_string(here) +
                             " bytes, at capacity only " + std::to_string(most));
    }
  }

  Model const* model_;
  std::map<BatchShape, ShapedModel> shaped_;
  ShapedModel const* capacity_;  // behind shaped_, which it points into
};

}  // namespace roundpipe
