// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What does the actions of devices.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

namespace roundpipe {

/// \brief The work of all devices. An executor knows no model, and compiles once for a backend.
template <Backend B>
class DeviceWork {
 public:
  /// Enqueues action \p id of \p run on \p stream of \p device. One thread a device calls it, in
  /// the order of the graphs.
  virtual void issue(RunState const& run,
                     ActionId id,
                     typename B::Stream& stream,
                     DeviceId device) = 0;

 protected:
  DeviceWork() = default;
  DeviceWork(DeviceWork const&) = default;
  DeviceWork& operator=(DeviceWork const&) = default;
  ~DeviceWork() = default;
};

}  // namespace roundpipe
