// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A model as a sequence of layers of different types, some of them repeated.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace roundpipe {

/// \p count equal layers in a row.
template <class L>
struct Repeat {
  std::size_t count = 1;
  L layer;
};

/// \p count layers like \p layer, for use inside \ref Sequential.
template <class L>
[[nodiscard]] Repeat<L> repeat(std::size_t count, L layer) {
  return {count, std::move(layer)};
}

namespace detail {
template <class T>
struct RunOf {
  using type = Repeat<T>;
  static type make(T layer) { return {1, std::move(layer)}; }
};
template <class L>
struct RunOf<Repeat<L>> {
  using type = Repeat<L>;
  static type make(type run) { return run; }
};

/// A function object that can be called with a layer of type \p L.
template <class F, class L>
concept TakesLayer = requires(F& f, L const& layer) { f(layer); };
}  // namespace detail

/// Layers in execution order: `Sequential{embedding, repeat(28, block), head}`.
///
/// It is a tuple of runs; a layer's number becomes a call through a table made at compile time.
template <class... Layers>
class Sequential {
 public:
  template <class... Parts>
    requires(sizeof...(Parts) == sizeof...(Layers) && sizeof...(Parts) > 0)
  explicit Sequential(Parts... parts) : runs_{detail::RunOf<Parts>::make(std::move(parts))...} {
    std::size_t run = 0;
    std::apply(
        [&](auto const&... r) { ((layer_count_ += r.count, ends_[run++] = layer_count_), ...); },
        runs_);
    require(layer_count_ > 0, Errc::invalid_argument, "a model has at least one layer");
  }

  [[nodiscard]] std::size_t layer_count() const noexcept { return layer_count_; }

  /// Calls \p f with layer number \p id and returns what it returns; \p f must return the same
  /// type for every layer type. Precondition: the layer exists.
  template <class F>
    requires(detail::TakesLayer<F, Layers> && ...)
  decltype(auto) visit(LayerId id, F&& f) const {
    using Function = std::remove_reference_t<F>;
    using First = typename std::tuple_element_t<0, std::tuple<Layers...>>;
    using Result = std::invoke_result_t<Function&, First const&>;
    using Call = Result (*)(Runs const&, Function&);
    static constexpr auto table = []<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<Call, sizeof...(Layers)>{
          +[](Runs const& runs, Function& g) -> Result { return g(std::get<I>(runs).layer); }...};
    }(std::index_sequence_for<Layers...>{});
    return table[run_of(id)](runs_, f);
  }

  /// The number of the run that holds layer \p id. The layers of a run are copies of each other.
  /// Precondition: the layer exists.
  [[nodiscard]] std::size_t run_of(LayerId id) const noexcept {
    std::size_t run = 0;
    while (id.index() >= ends_[run]) {
      ++run;
    }
    return run;
  }

 private:
  using Runs = std::tuple<Repeat<Layers>...>;

  Runs runs_;
  std::array<std::size_t, sizeof...(Layers)> ends_{};  // one past each run's last layer
  std::size_t layer_count_ = 0;
};

namespace detail {
template <class T>
struct LayerOf {
  using type = T;
};
template <class L>
struct LayerOf<Repeat<L>> {
  using type = L;
};
}  // namespace detail

template <class... Parts>
Sequential(Parts...) -> Sequential<typename detail::LayerOf<Parts>::type...>;

}  // namespace roundpipe
