// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Puts a device's actions on its streams, between waits and events.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/issuer.hpp>
#include <roundpipe/runtime/execute/device_work.hpp>
#include <roundpipe/runtime/execute/graph_run.hpp>
#include <roundpipe/runtime/execute/host_progress.hpp>
#include <roundpipe/runtime/execute/issue_pace.hpp>
#include <roundpipe/runtime/execute/run_located.hpp>
#include <roundpipe/runtime/execute/run_waits.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace roundpipe {

/// One device's streams, one for each lane, and what is enqueued on them. For the threads of \ref
/// Issuer, each with the lanes of its own.
template <Backend B>
class DeviceIssuer {
 public:
  using Stream = typename B::Stream;

  /// All arguments must outlive the issuer.
  DeviceIssuer(B& backend, DeviceWork<B>& work, HostProgress<B> const& hosts, DeviceId device)
      : work_(work), hosts_(hosts), device_(device), pace_(backend, device) {
    for (std::size_t k = 0; k < device_lane_count; ++k) {
      streams_.push_back(backend.make_stream(device, static_cast<LaneKind>(k)));
    }
  }

  [[nodiscard]] Stream& stream(LaneKind kind) { return streams_[static_cast<std::size_t>(kind)]; }

  /// Enqueues action \p id of \p run, its events around it, behind all that the action waits for.
  /// Blocks until the devices' actions among that are issued, until the host's are done where the
  /// \ref Issuer waits for them, and while this device is too far behind.
  /// \throws Error with the action's name and the device for what the work throws.
  void issue(GraphRun<B>& run, ActionId id) {
    auto const kind = run.program()[id].lane.kind;
    auto& stream = this->stream(kind);
    bool const waits_for_host = Issuer::of(run.program()[id].lane).waits_for_host();
    for_each_wait(
        run,
        id,
        [&](auto& event) { stream.wait(event); },
        [&](LaneKind lane, std::uint64_t sequence) {
          if (waits_for_host) {
            hosts_.wait(lane, sequence);
          }
          stream.wait(hosts_.fence(lane), sequence);  // in an abort, the wait above may pass early
        });
    bool const computes = kind == LaneKind::compute;
    if (computes) {
      pace_.before();
    }
    annotate(stream, run.program().label(id).c_str());
    stream.record(run.start_event(id));
    run_located(run, id, ", device " + std::to_string(device_.value()), [&] {
      work_.issue(run, id, stream, device_);
    });
    stream.record(run.end_event(id));
    annotate(stream, nullptr);
    if (computes) {
      pace_.after(stream);
    }
  }

 private:
  static void annotate(Stream& stream, char const* label) {
    if constexpr (HasAnnotate<Stream>) {
      stream.annotate(label);
    }
  }

  DeviceWork<B>& work_;
  HostProgress<B> const& hosts_;
  DeviceId device_;
  std::vector<Stream> streams_;  // by kind
  IssuePace<B> pace_;
};

}  // namespace roundpipe
