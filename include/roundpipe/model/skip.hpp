// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Skip connections: a tensor goes past the layers between the one that makes it and the one
/// that takes it.

#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/requirements.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/sequential.hpp>
#include <roundpipe/model/skip_layer.hpp>

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace roundpipe {

/// A layer inside of \ref skip that reads the tensor that goes past it: see \ref reads_skip.
template <class L>
struct ReadsSkip {
  using MarkedForSkip = void;
  L layer;
};

/// A layer inside of \ref skip that reads the carried tensor: the last tensor of its input. Its
/// boundary does not hold the tensor, which goes on to the next layer all the same.
template <class L>
[[nodiscard]] ReadsSkip<L> reads_skip(L layer) {
  return {std::move(layer)};
}

/// \p layer, which hands over the last tensor of its boundary twice: the next layer takes one, and
/// a skip connection carries the other, whose name is \p name. The gradients of both are added up.
template <LayerDescription L>
[[nodiscard]] SkipLayer<L, SkipRole::fork> fork(L layer, std::string name = "skip") {
  auto carried = [last = last_output(layer), name = std::move(name)](BatchShape shape) {
    auto spec = last(shape);
    spec.name = name;
    return spec;
  };
  return {std::move(layer), std::move(carried)};
}

namespace detail {

/// Whether \p T is one layer, neither several nor marked.
template <class T>
inline constexpr bool is_single_layer = !MarkedForSkip<T>;
template <class L>
inline constexpr bool is_single_layer<Repeat<L>> = false;
template <class... Layers>
inline constexpr bool is_single_layer<Section<Layers...>> = false;

template <class L>
consteval bool check_inner_layer() {
  static_assert(is_single_layer<L>, "reads_skip takes one layer: repeat(n, reads_skip(layer))");
  using Check = decltype(std::declval<LayerChecker<void>>()(std::declval<L const&>()));
  static_assert(!LossLayer<L> && !HasResults<L> && sizeof(Check) > 0,
                "a skip connection goes past layers that another layer follows: none of them can "
                "be a loss layer or have results");
  return true;
}

/// A run of layers past which \p carried goes.
template <class L>
[[nodiscard]] auto past(CarriedTensor const& carried, Repeat<L> run) {
  static_assert(check_inner_layer<L>());
  using Past = SkipLayer<L, SkipRole::past>;
  return Repeat<Past>{run.count, Past(std::move(run.layer), carried)};
}
template <class L>
[[nodiscard]] auto past(CarriedTensor const& carried, Repeat<ReadsSkip<L>> run) {
  static_assert(check_inner_layer<L>());
  using Reads = SkipLayer<L, SkipRole::reads>;
  return Repeat<Reads>{run.count, Reads(std::move(run.layer.layer), carried)};
}

template <class... Layers>
[[nodiscard]] Section<Layers...> section_of(std::tuple<Repeat<Layers>...> runs) {
  return {std::move(runs)};
}

}  // namespace detail

/// \brief A skip connection: the first layer makes a tensor, the last one takes it, and it goes
/// past all layers between them. For use inside \ref Sequential, or of another skip connection.
///
/// `skip(down, skip(down, bottleneck, up), up)`: the carried tensor is the last one of the first
/// layer's boundary, and the last one of the last layer's input. The layers between take what is
/// left of the boundary. Such a layer can read the carried tensor: \ref reads_skip. A layer of one
/// tensor begins a connection by \ref fork.
///
/// A part is a layer, a \ref repeat, a \ref reads_skip or another skip connection. Streams need
/// \ref AddsTensors. A tensor that goes past layers on its way over a stage's border is a part of
/// the boundary there.
template <class Begin, class... Parts>
[[nodiscard]] auto skip(Begin begin, Parts... parts) {
  static_assert(sizeof...(Parts) > 0,
                "a skip connection has a layer that begins it, and one that ends it");
  if constexpr (sizeof...(Parts) > 0) {
    using End = std::tuple_element_t<sizeof...(Parts) - 1, std::tuple<Parts...>>;
    static_assert(detail::is_single_layer<Begin> && detail::is_single_layer<End>,
                  "one layer begins a skip connection, and one ends it: neither is repeated, "
                  "marked, or a skip connection");
    auto const carried = last_output(begin);
    auto runs = std::tuple_cat(detail::RunsOf<Parts>::make(std::move(parts))...);
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return detail::section_of(
          std::tuple_cat(detail::RunsOf<Begin>::make(std::move(begin)),
                         std::tuple(detail::past(carried, std::move(std::get<I>(runs)))...),
                         std::tuple(std::move(std::get<sizeof...(I)>(runs)))));
    }(std::make_index_sequence<std::tuple_size_v<decltype(runs)> - 1>());
  }
}

}  // namespace roundpipe
