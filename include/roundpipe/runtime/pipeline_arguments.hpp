// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the compiler says of arguments of which no pipeline can be made.

#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/policies.hpp>

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace roundpipe::detail {

/// Whether argument \p i is there and converts to \p T.
template <std::size_t i, class T, class... A>
consteval bool is_argument() {
  if constexpr (i < sizeof...(A)) {
    return std::is_convertible_v<std::tuple_element_t<i, std::tuple<A...>>, T>;
  } else {
    return false;
  }
}

/// Whether \p A are a model, an optimizer, a backend and options, and perhaps policies, as far as
/// the types tell that can be told apart.
template <class... A>
concept PipelineArguments =
    is_argument<3, PipelineOptions, A...>() &&
    (sizeof...(A) == 4 || (sizeof...(A) == 5 && is_argument<4, Policies const&, A...>()));

/// Takes the place of a model where arguments are wrong.
template <class... A>
struct WrongArguments {};

template <class M>
struct ArgumentCheck {
  static constexpr bool holds = true;
};
template <class... A>
struct ArgumentCheck<WrongArguments<A...>> {
  static constexpr bool has_bare_policy = sizeof...(A) > 4 &&
                                          is_argument<3, PipelineOptions, A...>();
  static_assert(!has_bare_policy,
                "policies have names: 'Pipeline{model, optimizer, backend, options, "
                "Policies{.partitioner = Mine{}}}'");
  static_assert(has_bare_policy,
                "a pipeline needs 'Pipeline{model, optimizer, backend, options}', in this order, "
                "and perhaps policies behind them");
  static constexpr bool holds = true;
};

/// What a pipeline of \p M asserts first.
template <class M>
consteval bool check_arguments() {
  return ArgumentCheck<M>::holds;
}

}  // namespace roundpipe::detail
