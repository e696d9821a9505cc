// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Checks that no timing of a sequence of graphs can change what is computed, or stop it.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace roundpipe {

/// What a graph can violate. The first five are the rules of \ref LayerEventProtocol.
enum class Rule : std::uint8_t {
  upload_before_copy = 1,      ///< 1: an upload that must see older weights may see newer ones.
  copy_before_upload = 2,      ///< 2: an upload may see older weights than it must.
  gradient_before_reader = 3,  ///< 3: gradients may be read before they are written.
  reader_before_gradient = 4,  ///< 4: gradients may be overwritten before they are read.
  copy_between_steps = 5,      ///< 5: a P copy may see a torn, older or newer optimizer copy.
  data,                        ///< Another buffer may be read before, or while, it is written.
  buffer_reuse,  ///< An arena's entry may be written while its former content is still in use.
  deadlock,      ///< A wait can never be met.
  queueing,      ///< An activation copy may queue behind a parameter or gradient chunk.
};

[[nodiscard]] constexpr char const* name_of(Rule rule) noexcept {
  constexpr char const* names[] = {"",
                                   "rule 1 (uploads before the copy that overwrites)",
                                   "rule 2 (copy before the uploads that must see it)",
                                   "rule 3 (gradients before their reader)",
                                   "rule 4 (reader before the next gradients)",
                                   "rule 5 (copies between steps)",
                                   "data (writer before reader before writer)",
                                   "buffer reuse (all users before the next content)",
                                   "deadlock",
                                   "queueing (activations before chunks)"};
  return names[static_cast<std::size_t>(rule)];
}

/// A pair of actions that nothing keeps in order, or a circle of waits.
struct Violation {
  Rule rule = Rule::data;
  std::size_t first = 0;   ///< The unrolled action that must come first.
  std::size_t second = 0;  ///< The one that must come after it.
  std::string text;        ///< Names the rule and the actions.

  friend bool operator==(Violation const&, Violation const&) = default;
};

namespace detail {

/// Whether two actions that use one location touch the same bytes of it.
[[nodiscard]] bool overlaps(BufferKind kind, Action const& a, Action const& b);

}  // namespace detail

/// Checks a sequence that is unrolled already; see below.
[[nodiscard]] std::vector<Violation> verify(std::vector<UnrolledAction> const& actions,
                                            std::size_t most = 16);

/// \brief Checks \p sequence and names what it violates, at most \p most times: an order of \ref
/// Rule that nothing keeps, or a circle of waits. None means that no timing changes what is
/// computed.
///
/// What an action should find is what it would find if all actions ran one after another in issue
/// order; the weights of the step that the staleness says. The order is that of waits and of lanes
/// alone, as the runtime resolves them: how long anything takes, or that the controller waits for
/// a loss, is not used. Chunks that make no claim (`Chunk::gated` is false) may be in the way of
/// activations. Side inputs, losses and results belong to the controller and are not looked at, nor
/// is scratch, which the compute lane alone uses.
///
/// \p sequence should hold what happens between two calls that are alike: several calls a step
/// where there are such, steps, evaluations (each after a flush, where there is one, and a
/// `synchronize`), and iterations enough that every device has every part.
[[nodiscard]] std::vector<Violation> verify(GraphSequence const& sequence, std::size_t most = 16);

/// Checks two runs of \p graph in a row.
[[nodiscard]] std::vector<Violation> verify(ActionGraph const& graph);

/// \throws Error (unsafe_graph) with the first violations, if \p sequence has any.
void require_safe(GraphSequence const& sequence);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/verify.ipp>
#endif
