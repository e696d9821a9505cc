// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the actions of a graph mean to those who run it, and errors that name an action.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>

#include <exception>
#include <string>

namespace roundpipe {

/// What the actions of a graph mean: `issue` enqueues a device's action on its stream, `run` does a
/// host's action. Both are called from the executor's threads, in the lanes' order. `abandon` is
/// called once on a host lane's thread that an error stops before an action, with that action.
template <class W, class B>
concept ActionWork =
    requires(W& work, GraphRun<B>& run, ActionId id, typename B::Stream& stream, DeviceId device) {
      work.issue(run, id, stream, device);
      work.run(run, id);
      work.abandon(run, id);
    };

/// Calls \p f, and says in what it throws that action \p id of \p run threw it, and \p where.
/// \throws Error with the code and the place of what \p f throws; (device fault) where that is no
///         Error.
template <Backend B, class F>
void run_located(GraphRun<B> const& run, ActionId id, std::string const& where, F&& f) {
  auto const located = [&](char const* reason) {
    return run.program().label(id) + where + ": " + reason;
  };
  try {
    f();
  } catch (Error const& error) {
    throw Error(error.code(), located(error.message().c_str()), error.where());
  } catch (std::exception const& error) {
    throw Error(Errc::device_fault, located(error.what()));
  }
}

}  // namespace roundpipe
