// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What holds the layers of a model, and hands them out one by one.
///
/// Customization points, all member functions:
///
/// | member           | who has it                                                                |
/// |------------------|---------------------------------------------------------------------------|
/// | `layer_count()`  | every model                                                               |
/// | `visit(id, f)`   | every model                                                               |
/// | `run_of(id)`     | opt-in: which layers are copies of each other; then one of a run is timed |

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/core/id.hpp>

#include <concepts>
#include <cstddef>
#include <utility>

namespace roundpipe {

namespace detail {

/// Takes layers that describe themselves.
struct DescriptionVisitor {
  template <LayerDescription L>
  std::size_t operator()(L const&) const {
    return 0;
  }
};

/// Takes layers that run on \p Stream.
template <class Stream>
struct LayerVisitor {
  template <Layer<Stream> L>
  std::size_t operator()(L const&) const {
    return 0;
  }
};

}  // namespace detail

/// \brief Layers in execution order, numbered from 0, for any of which \p Visitor can be called.
template <class M, class Visitor>
concept Visitable = requires(M const& model, LayerId id, Visitor visitor) {
  { model.layer_count() } -> std::convertible_to<std::size_t>;
  { model.visit(id, std::move(visitor)) } -> std::same_as<std::size_t>;
};

/// \brief A model whose layers describe themselves: enough for a plan.
template <class M>
concept DescribedModel = std::move_constructible<M> && Visitable<M, detail::DescriptionVisitor>;

/// \brief A model whose layers run on \p Stream.
///
/// Semantics:
/// 1. `layer_count()` is at least 1 and stays the same.
/// 2. `visit(id, f)` calls `f` once with layer number `id` as a constant reference and returns what
///    `f` returns. `f` is a function object that takes every layer type of the model and returns
///    the same type for each. Layer numbers go from 0 to `layer_count()` - 1.
/// 3. Equal ids give the same layer; reason: what a layer says of itself is read once, for a plan.
/// 4. Both are `const`, and several threads call them at once; reason: each device has its own
///    issuing threads.
///
/// Satisfied by: `Sequential`, and a user's own, for example a vector of variants.
template <class M, class Stream>
concept Model = DescribedModel<M> && Visitable<M, detail::LayerVisitor<Stream>>;

/// \brief A model that tells its runs: layers of one run are copies of each other.
template <class M>
concept HasRuns = requires(M const& model, LayerId id) {
  { model.run_of(id) } -> std::equality_comparable;
};

}  // namespace roundpipe
