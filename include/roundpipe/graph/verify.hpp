// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Checks that no timing of a sequence of graphs can change the results or cause a deadlock.

#include <roundpipe/config.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/graph/sequence_order.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

/// The rules that a graph can violate. The first five are the rules of \ref LayerEventProtocol, the
/// sixth is of ranks that share blocks.
enum class Rule : std::uint8_t {
  upload_before_copy = 1,      ///< 1: an upload that must see older weights may see newer ones.
  copy_before_upload = 2,      ///< 2: an upload may see older weights than it must.
  gradient_before_reader = 3,  ///< 3: gradients may be read before they are written.
  reader_before_gradient = 4,  ///< 4: gradients may be overwritten before they are read.
  copy_between_steps = 5,      ///< 5: a P copy may see a torn, older or newer optimizer copy.
  share_before_gather = 6,     ///< 6: a gather may send weights that are not those of its step.
  data,                        ///< Another buffer may be read before, or while, it is written.
  buffer_reuse,                ///< A ring entry may be written while its former content is in use.
  deadlock,                    ///< A wait can never be met.
  queueing,  ///< An activation copy may queue behind a parameter or gradient chunk.
};

[[nodiscard]] constexpr char const* name_of(Rule rule) noexcept {
  constexpr char const* names[] = {"",
                                   "rule 1 (uploads before the copy that overwrites)",
                                   "rule 2 (copy before the uploads that must see it)",
                                   "rule 3 (gradients before their reader)",
                                   "rule 4 (reader before the next gradients)",
                                   "rule 5 (copies between steps)",
                                   "rule 6 (the own share before its gather)",
                                   "data (writer before reader before writer)",
                                   "buffer reuse (all users before the next content)",
                                   "deadlock",
                                   "queueing (activations before chunks)"};
  return names[static_cast<std::size_t>(rule)];
}

/// A pair of actions without a guaranteed order, or a cycle of waits.
struct Violation {
  Rule rule = Rule::data;
  std::size_t first = 0;   ///< The unrolled action that must come first.
  std::size_t second = 0;  ///< The unrolled action that must come second.
  std::string text;        ///< Names the rule and the actions.

  friend bool operator==(Violation const&, Violation const&) = default;
};

namespace detail {

/// Whether two actions that use one location of \p ring touch the same bytes of it.
[[nodiscard]] bool overlaps(Ring const& ring, Action const& a, Action const& b);

}  // namespace detail

/// Checks an unrolled sequence, whose order is \p order; see below.
[[nodiscard]] std::vector<Violation> verify(std::span<UnrolledAction const> actions,
                                            SequenceOrder const& order,
                                            std::size_t most = 16);

/// \brief Checks \p sequence and returns at most \p most violations: unordered pairs under a \ref
/// Rule, or a cycle of waits. Without violations, no timing changes the results.
/// An action should find the content that it would find if all actions ran one after another in
/// issue order, and the weights of the step that the staleness allows. Only waits and lanes order
/// actions, as the runtime resolves them: the check does not use durations, or the controller's
/// waits for losses. Ungated chunks (`Chunk::gated` is false) may delay activations. The check
/// skips side inputs, losses and results, which belong to the controller, and scratch, which only
/// the compute lane uses.
/// \p sequence should hold everything between two equal calls: several calls in a step where the
/// training has them, steps, evaluations (each after a `synchronize`), flushes (each between two),
/// and enough iterations that every device takes every part.
[[nodiscard]] std::vector<Violation> verify(GraphSequence const& sequence, std::size_t most = 16);

/// Checks two consecutive runs of \p graph.
[[nodiscard]] std::vector<Violation> verify(ActionGraph const& graph);

/// \throws Error (unsafe_graph) with the first violations, if \p sequence has any.
void require_safe(GraphSequence const& sequence);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/graph/impl/verify.ipp>
#endif
