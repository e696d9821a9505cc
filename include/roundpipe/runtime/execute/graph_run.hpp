// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief One run of a graph, with the events around its devices' actions.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/issuer.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/execute/graph_program.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace roundpipe {

/// A slot for runs of one program: used again and again, one run at a time.
template <Backend B>
class GraphRun : public RunState {
 public:
  using Event = typename B::Event;

  /// Makes events for every device that an action can run on. \p program and \p call must outlive
  /// the run.
  GraphRun(B& backend, GraphProgram const& program, CallData& call) : RunState(program, call) {
    for (auto const part : Issuer::parts) {
      std::size_t most = 0;
      for (std::size_t d = 0; d < devices(); ++d) {
        most = std::max(most, program.of_issuer({DeviceId(d), part}).size());
      }
      events_.resize(issuers_of(devices()));
      for (std::size_t d = 0; d < devices(); ++d) {
        Issuer const issuer{DeviceId(d), part};
        for (std::size_t i = 0; i < 2 * most; ++i) {
          events_[issuer.index()].push_back(backend.make_event(issuer.device));
        }
      }
    }
  }

  /// The events around an action of a device.
  [[nodiscard]] Event& start_event(ActionId id) { return event(id, 0); }
  [[nodiscard]] Event& end_event(ActionId id) { return event(id, 1); }

 private:
  [[nodiscard]] Event& event(ActionId id, std::size_t which) {
    auto issuer = Issuer::of(program()[id].lane);
    issuer.device = physical(issuer.device);
    return events_[issuer.index()][2 * program().position(id) + which];
  }

  std::vector<std::vector<Event>> events_;  // by physical issuer: start and end by position
};

}  // namespace roundpipe
