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

/// Consecutive layers that stand in a \ref Sequential as one part, as those of a skip connection.
template <class... Layers>
struct Section {
  std::tuple<Repeat<Layers>...> runs;
};

namespace detail {
/// The runs of a part of a model, as a tuple.
template <class T>
struct RunsOf {
  using type = std::tuple<Repeat<T>>;
  static type make(T layer) { return {Repeat<T>{1, std::move(layer)}}; }
};
template <class L>
struct RunsOf<Repeat<L>> {
  using type = std::tuple<Repeat<L>>;
  static type make(Repeat<L> run) { return {std::move(run)}; }
};
template <class... Layers>
struct RunsOf<Section<Layers...>> {
  using type = std::tuple<Repeat<Layers>...>;
  static type make(Section<Layers...> section) { return std::move(section.runs); }
};

/// A function object that can be called with a layer of type \p L.
template <class F, class L>
concept TakesLayer = requires(F& f, L const& layer) { f(layer); };
/// The same for the layers of all \p Runs.
template <class F, class Runs>
inline constexpr bool takes_layers = false;
template <class F, class... Layers>
inline constexpr bool takes_layers<F, std::tuple<Repeat<Layers>...>> =
    (TakesLayer<F, Layers> && ...);

/// A mark around a layer, which means something inside of a skip connection alone.
template <class T>
concept MarkedForSkip = requires { typename T::MarkedForSkip; };
}  // namespace detail

/// Layers in execution order: `Sequential{embedding, repeat(28, block), head}`. A part is a layer,
/// a
/// \ref repeat or a \ref Section.
///
/// It is a tuple of runs; a layer's number becomes a call through a table made at compile time.
template <class... Layers>
class Sequential {
  static_assert(!(detail::MarkedForSkip<Layers> || ...),
                "reads_skip(layer) stands inside of a skip(...), whose tensor the layer reads");
  using Runs = decltype(std::tuple_cat(std::declval<typename detail::RunsOf<Layers>::type>()...));

 public:
  template <class... Parts>
    requires(sizeof...(Parts) == sizeof...(Layers) && sizeof...(Parts) > 0)
  explicit Sequential(Parts... parts)
      : runs_(std::tuple_cat(detail::RunsOf<Parts>::make(std::move(parts))...)) {
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
    requires detail::takes_layers<F, Runs>
  decltype(auto) visit(LayerId id, F&& f) const {
    using Function = std::remove_reference_t<F>;
    using First = decltype(std::tuple_element_t<0, Runs>::layer);
    using Result = std::invoke_result_t<Function&, First const&>;
    using Call = Result (*)(Runs const&, Function&);
    static constexpr auto table = []<std::size_t... I>(std::index_sequence<I...>) {
      return std::array<Call, run_count>{
          +[](Runs const& runs, Function& g) -> Result { return g(std::get<I>(runs).layer); }...};
    }(std::make_index_sequence<run_count>{});
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
  static constexpr std::size_t run_count = std::tuple_size_v<Runs>;

  Runs runs_;
  std::array<std::size_t, run_count> ends_{};  // one past each run's last layer
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
