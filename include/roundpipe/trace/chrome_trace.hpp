// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Writes a timeline in the Trace Event Format, which Perfetto and chrome://tracing read.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/trace/trace_file.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>

namespace roundpipe {

namespace detail {

/// The writer's numbers: viewers read process 0 and thread 0 as an idle CPU, and some take a thread
/// number for unique among all processes.
struct TraceIds {
  std::size_t process = 0;
  std::size_t thread = 0;

  /// Devices come first, then the host.
  TraceIds(Lane lane, std::size_t devices)
      : process(1 + (lane.device.valid() ? lane.device.index() : devices)),
        thread((device_lane_count + host_lane_count) * process +
               static_cast<std::size_t>(lane.kind)) {}
};

/// "forward of layer 3", "copy parameters of block 2", "upload activation of stage 1".
[[nodiscard]] inline std::string action_title(TimelineEntry const& entry) {
  std::string const kind = name_of(entry.kind);
  auto const of = [&](char const* noun, auto id) {
    return kind + " of " + noun + " " + std::to_string(id.value());
  };
  return entry.layer.valid()   ? of("layer", entry.layer)
         : entry.block.valid() ? of("block", entry.block)
         : entry.stage.valid() ? of("stage", entry.stage)
                               : kind;
}

[[nodiscard]] inline nlohmann::ordered_json action_event(TimelineEntry const& entry,
                                                         std::size_t devices) {
  auto args = nlohmann::ordered_json::object();
  auto const add = [&](char const* key, auto id) {
    if (id.valid()) {
      args[key] = id.value();
    }
  };
  args["call"] = entry.graph;
  add("action", entry.id);
  add("slot", entry.slot);
  add("stage", entry.stage);
  add("round", entry.round);
  bool const is_chunk =
      entry.kind == ActionKind::upload_parameters || entry.kind == ActionKind::download_gradients;
  add(is_chunk ? "window" : "micro_batch", entry.micro_batch);
  add("layer", entry.layer);
  add("block", entry.block);
  if (entry.bytes > 0) {
    args["bytes"] = entry.bytes;
  }
  TraceIds const ids(entry.lane, devices);
  return {{"name", action_title(entry)},
          {"cat", name_of(entry.lane.kind)},
          {"ph", "X"},
          {"ts", entry.start_s * 1e6},
          {"dur", entry.seconds() * 1e6},
          {"pid", ids.process},
          {"tid", ids.thread},
          {"args", std::move(args)}};
}

/// A metadata event: \p what is "process_name", "thread_sort_index" and the like.
[[nodiscard]] inline nlohmann::ordered_json naming_event(TraceIds const& ids,
                                                         char const* what,
                                                         char const* key,
                                                         nlohmann::ordered_json value) {
  return {{"name", what},
          {"ph", "M"},
          {"pid", ids.process},
          {"tid", ids.thread},
          {"args", {{key, std::move(value)}}}};
}

/// One end of a flow, in the slice of \p entry: an arrow leads from phase "s" to phase "f" of one
/// id, name and category.
[[nodiscard]] inline nlohmann::ordered_json flow_event(char const* phase,
                                                       std::size_t id,
                                                       TimelineEntry const& entry,
                                                       double at_s,
                                                       std::size_t devices) {
  TraceIds const ids(entry.lane, devices);
  return {{"name", "waits for"},
          {"cat", "flow"},
          {"ph", phase},
          {"id", id},
          {"ts", at_s * 1e6},
          {"pid", ids.process},
          {"tid", ids.thread}};
}

/// The events of a timeline's flows, by the entry in whose slice they lie.
/// \throws Error (invalid_argument) as \ref write_chrome_trace does.
[[nodiscard]] inline std::multimap<std::size_t, nlohmann::ordered_json> flow_events(
    Timeline const& timeline) {
  std::multimap<std::size_t, nlohmann::ordered_json> events;
  for (std::size_t id = 0; id < timeline.flows.size(); ++id) {
    auto const& flow = timeline.flows[id];
    require(flow.from < timeline.entries.size() && flow.to < timeline.entries.size(),
            Errc::invalid_argument,
            "a flow of a timeline names an entry that the timeline has not");
    auto const& from = timeline.entries[flow.from];
    auto const& to = timeline.entries[flow.to];
    require(from.start_s <= to.start_s,
            Errc::invalid_argument,
            "a flow of a timeline leads to an entry that starts before the one it waited for");
    // A slice does not hold its own end: the next slice may begin there. Of the middle and the
    // other slice's start, the earlier one lies in both this slice and the other's past, even where
    // measured times of two devices overlap a little.
    auto const leaves_s = std::min(from.start_s + from.seconds() / 2, to.start_s);
    events.emplace(flow.from, flow_event("s", id, from, leaves_s, timeline.devices));
    auto arrives = flow_event("f", id, to, to.start_s, timeline.devices);
    arrives["bp"] = "e";  // bind to the enclosing slice, not to the next one
    events.emplace(flow.to, std::move(arrives));
  }
  return events;
}

}  // namespace detail

/// Writes \p timeline to \p out as one JSON object, one event a line: every device is a process
/// "device 0", its lanes are threads; the host's lanes are threads of the process "host". An
/// action is a complete event with its times in microseconds, named for what it does and to what;
/// its arguments are call (the number of its graph), action, slot, stage, round, micro_batch (of a
/// parameter or gradient chunk: window), layer, block and bytes, as far as it has them. A flow is
/// an arrow from an action to the one that waited for it.
/// \throws Error (invalid_argument) when an entry names a device that the timeline has not, or a
///         flow an entry, or when a flow leads back in time; (std::errc::io_error) when \p out
///         fails.
inline void write_chrome_trace(Timeline const& timeline, std::ostream& out) {
  char const* separator = "\n";
  auto const write = [&](nlohmann::ordered_json const& event) {
    out << separator << event.dump();
    separator = ",\n";
  };
  detail::require_known_devices(timeline);
  auto const flow_events = detail::flow_events(timeline);
  std::set<Lane> lanes;
  for (auto const& entry : timeline) {
    lanes.insert(entry.lane);
  }
  out << R"({"displayTimeUnit":"ms","traceEvents":[)";
  std::set<DeviceId> named;
  for (auto const& lane : lanes) {
    detail::TraceIds const ids(lane, timeline.devices);
    if (named.insert(lane.device).second) {
      auto const name = lane.device.valid() ? "device " + std::to_string(lane.device.value())
                                            : std::string("host");
      write(detail::naming_event(ids, "process_name", "name", name));
      write(detail::naming_event(ids, "process_sort_index", "sort_index", ids.process));
    }
    write(detail::naming_event(ids, "thread_name", "name", name_of(lane.kind)));
    write(detail::naming_event(ids, "thread_sort_index", "sort_index", ids.thread));
  }
  for (std::size_t i = 0; i < timeline.entries.size(); ++i) {
    write(detail::action_event(timeline.entries[i], timeline.devices));
    // Readers sort by time and keep the order of equals: behind its own slice, before any other
    // that begins at the same time, an event binds to its own.
    auto const [first, last] = flow_events.equal_range(i);
    for (auto event = first; event != last; ++event) {
      write(event->second);
    }
  }
  out << "\n]}\n";
  detail::require_written(out);
}

/// Writes \p timeline to the file \p path, replacing it.
/// \throws Error (with the system's code) when the file can not be written, and as above. A file
///         that could not be finished is removed.
inline void write_chrome_trace(Timeline const& timeline, std::filesystem::path const& path) {
  detail::write_trace_file(path, [&](std::ostream& out) { write_chrome_trace(timeline, out); });
}

}  // namespace roundpipe
