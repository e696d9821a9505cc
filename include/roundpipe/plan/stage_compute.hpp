// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The part of a call's graph that computes: a slot's layers, micro-batch by micro-batch.

#include <roundpipe/config.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/plan/call_context.hpp>
#include <roundpipe/plan/save_copies.hpp>

#include <cstddef>
#include <functional>

namespace roundpipe::detail {

/// Adds the compute actions of slots, whose activations and parameters are on their way.
class StageCompute {
 public:
  /// Is told what pass was added, and whether it completes what the micro-batch hands on.
  using AfterPass = std::function<void(Pass const& pass, bool completes_entry)>;

  /// Both must outlive this.
  StageCompute(CallContext& call, SaveCopies& saves) : call_(call), saves_(saves) {}

  /// Adds all passes of slot \p id for micro-batch \p m, and the copies of what they save. Calls \p
  /// after, if any, behind each pass.
  void add(SlotId id, std::size_t m, AfterPass const& after = {});

 private:
  void add_forward(SlotId id, std::size_t m, Pass const& pass);

  void add_backward(SlotId id, std::size_t m, Pass const& pass);

  /// Whether \p pass of slot \p id makes a part of what micro-batch \p m hands to the host: a
  /// boundary or the loss.
  [[nodiscard]] bool writes_entry(SlotId id, std::size_t m, Pass const& pass) const;

  /// Makes \p action, which computes \p pass, use the boundaries that it reads and writes.
  void use_boundaries(Action& action, Pass const& pass);

  /// Makes \p action write what its micro-batch hands on.
  void write_entry(Action& action);

  /// Makes \p action read the parameters of its layer, unless it has no need of them.
  void read_parameters(Action& action);

  /// Completes \p action, which computes \p pass, with what it reads, and adds it.
  ActionId add_layer(Pass const& pass, Action action);

  CallContext& call_;
  SaveCopies& saves_;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/plan/impl/stage_compute.ipp>
#endif
