// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What updates the optimizer copy of a parameter from its gradient, on the host.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/span.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace roundpipe {

/// The arguments of an update besides its arrays.
struct UpdateContext {
  std::uint64_t step = 1;         ///< The number of this step, from 1.
  float gradient_factor = 1;      ///< Multiplies every gradient first (clipping, unscaling).
  ParameterInfo parameter{};      ///< Whose part this is.
  std::size_t first_element = 0;  ///< Where the part begins in the parameter.
};

/// The largest number of state arrays of an optimizer.
inline constexpr std::size_t max_update_states = 8;

/// \brief An update rule: of single elements, or of whole parameters.
///
/// Semantics:
/// 1. Each parameter has `state_arrays()` state arrays of its size, at most 8, which begin as
///    zeros. `update` sees them as fp32. Where states are stored in the parameter's type (see
///    `StateType`), each step rounds them.
/// 2. `update(context, weights, gradients, states)` may be called for any consecutive part of a
///    parameter, for several parts at once from several threads. The bits do not depend on the
///    cuts; reason: several threads share the optimizer's work.
/// 3. `gradients` and each of the `state_arrays()` entries of `states` hold as many elements as
///    `weights`.
/// 4. Answers depend on nothing but the arguments; reason: a step may ask several times, in any
///    order. What they read besides may change while no step is under way, after `synchronize()`.
/// 5. What refuses a step throws for each part of a parameter. `step()` calls `freezes`, and
///    `with_rule` or else `update` for one element of no parameter, before the step begins; reason:
///    an error that comes there leaves the weights as they are, a later one loses them. Where
///    `updates_whole`, `step()` calls `freezes` alone.
///
/// Opt-ins:
/// - `bool updates_whole(ParameterInfo const&)`: whether `update` gets all elements of this
///   parameter at once, in place of parts (rule 2); for rules that need norms, rows or products.
///   One thread updates such a parameter, others meanwhile update others of its block. Arrays that
///   are not fp32 are widened as a whole, in host memory that the plan counts.
/// - `bool freezes(ParameterInfo const&, std::uint64_t step)`: whether this step leaves the
///   parameter's weights and states as they are. Its gradient is still computed, and is part of the
///   norm for clipping; `ParameterSpec::frozen` spares that, for a whole training.
/// - `with_rule(context, f)`, see `update_pass.hpp`.
///
/// The names of opt-ins are reserved: a public member that has such a name, but another form, does
/// not compile in a pipeline.
///
/// Satisfied by: `AdamW`, `Sgd`.
template <class O>
concept Optimizer =
    std::copy_constructible<O> && requires(O const& optimizer,
                                           UpdateContext const& context,
                                           HostSpan<float> weights,
                                           HostSpan<float const> gradients,
                                           std::span<HostSpan<float> const> states) {
      { optimizer.state_arrays() } -> std::convertible_to<std::size_t>;
      optimizer.update(context, weights, gradients, states);
    };

/// `state_arrays()` of \p optimizer.
/// \throws Error (invalid_argument) for a number that breaks rule 1.
template <Optimizer O>
[[nodiscard]] std::size_t state_arrays(O const& optimizer) {
  std::size_t const count = optimizer.state_arrays();
  if (count > max_update_states) {
    throw broken_rule(
        "Optimizer::state_arrays",
        1,
        "it is " + std::to_string(count) + ", more than " + std::to_string(max_update_states));
  }
  return count;
}

/// An optimizer that may want whole parameters.
template <class O>
concept HasWholeUpdates = requires(O const& optimizer, ParameterInfo const& parameter) {
  { optimizer.updates_whole(parameter) } -> std::convertible_to<bool>;
};

/// Whether \p optimizer wants all of \p parameter at once.
template <Optimizer O>
[[nodiscard]] bool updates_whole(O const& optimizer, ParameterInfo const& parameter) {
  if constexpr (HasWholeUpdates<O>) {
    return optimizer.updates_whole(parameter);
  } else {
    return false;
  }
}

/// An optimizer that may leave out parameters.
template <class O>
concept HasFreezes =
    requires(O const& optimizer, ParameterInfo const& parameter, std::uint64_t step) {
      { optimizer.freezes(parameter, step) } -> std::convertible_to<bool>;
    };

/// Whether \p optimizer leaves \p parameter as it is in \p step.
template <Optimizer O>
[[nodiscard]] bool freezes(O const& optimizer, ParameterInfo const& parameter, std::uint64_t step) {
  if constexpr (HasFreezes<O>) {
    return optimizer.freezes(parameter, step);
  } else {
    return false;
  }
}

namespace detail {

/// Takes any rule.
struct RuleVisitor {
  template <class Rule>
  void operator()(Rule const&) const;
};

/// An optimizer that tells its element rule, see `element_rule.hpp`.
template <class O>
concept HasElementRule = requires(O const& optimizer, UpdateContext const& context) {
  optimizer.with_rule(context, RuleVisitor());
};

}  // namespace detail

}  // namespace roundpipe
