// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the actions of a graph mean to those who run it, and errors that name an action.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/execute/host_lane_traits.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <concepts>
#include <exception>
#include <span>
#include <string>

namespace roundpipe {

/// What the actions of a graph mean.
///
/// Semantics:
/// 1. `issue` enqueues a device's action on its stream; `run` does an action of the host. The
///    executor's threads call them, in the lanes' order.
/// 2. `abandon` is called once on the thread of a host's lane that an error stops, with the action
///    that the lane stops before.
/// 3. `host_lanes()` lists the lanes of the host that the work serves; the list lives as long as
///    the work. Reason: an executor has one thread for each, and knows no lane by name.
template <class W, class B>
concept ActionWork =
    requires(W& work, GraphRun<B>& run, ActionId id, typename B::Stream& stream, DeviceId device) {
      work.issue(run, id, stream, device);
      work.run(run, id);
      work.abandon(run, id);
      { work.host_lanes() } -> std::convertible_to<std::span<HostLaneTraits const>>;
    };

namespace detail {

/// Throws the exception under way, which comes from action \p id of \p run, with the action's name.
/// \throws Error with the code and the place of the exception; (device fault) where it is no Error.
[[noreturn]] inline void rethrow_located(RunState const& run,
                                         ActionId id,
                                         std::string const& where) {
  auto const located = [&](char const* reason) {
    return run.program().label(id) + where + ": " + reason;
  };
  try {
    throw;
  } catch (Error const& error) {
    throw Error(error.code(), located(error.message().c_str()), error.where());
  } catch (std::exception const& error) {
    throw Error(Errc::device_fault, located(error.what()));
  }
}

}  // namespace detail

/// Calls \p f for action \p id of \p run. What \p f throws comes out with the action's name and \p
/// where.
/// \throws Error with the code and the place of what \p f throws; (device fault) where that is no
///         Error.
template <class F>
void run_located(RunState const& run, ActionId id, std::string const& where, F&& f) {
  try {
    f();
  } catch (...) {
    detail::rethrow_located(run, id, where);
  }
}

}  // namespace roundpipe
