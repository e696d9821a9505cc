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

/// The process and thread numbers of the writer. Viewers treat process 0 and thread 0 as an idle
/// CPU, and some expect thread numbers to be unique across processes.
struct TraceIds {
  std::size_t process = 0;
  std::size_t thread = 0;

  /// Devices come first, then the host.
  TraceIds(Lane lane, std::size_t devices)
      : process(1 + (lane.device.valid() ? lane.device.index() : devices)),
        thread(threads * process + (lane.device.valid()
                                        ? static_cast<std::size_t>(lane.kind)
                                        : first_of_host + host_lane_index(lane.kind))) {}

 private:
  // As they were before saves had lanes, so that traces of different versions can be compared.
  static constexpr std::size_t first_of_host = 5;
  static constexpr std::size_t threads = first_of_host + host_lane_count;
  static_assert(device_lane_count <= threads);
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

/// A metadata event: \p what is, for example, "process_name" or "thread_sort_index".
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

/// One end of a flow, in the slice of \p entry: an arrow leads from phase "s" to phase "f" with the
/// same id, name and category.
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

/// The events of a timeline's flows, by the entry whose slice contains them.
/// \throws Error (invalid_argument) like \ref write_chrome_trace.
[[nodiscard]] inline std::multimap<std::size_t, nlohmann::ordered_json> flow_events(
    Timeline const& timeline) {
  std::multimap<std::size_t, nlohmann::ordered_json> events;
  for (std::size_t id = 0; id < timeline.flows.size(); ++id) {
    auto const& flow = timeline.flows[id];
    require(flow.from < timeline.entries.size() && flow.to < timeline.entries.size(),
            Errc::invalid_argument,
            "a flow of a timeline names an entry that the timeline does not have");
    auto const& from = timeline.entries[flow.from];
    auto const& to = timeline.entries[flow.to];
    require(from.start_s <= to.start_s,
            Errc::invalid_argument,
            "a flow of a timeline leads to an entry that starts before the entry it waited for");
    // A slice does not contain its own end, because the next slice may begin there. The arrow
    // starts at the middle of this slice or at the start of the other slice, whichever is earlier.
    // That point lies in this slice and not after the other's start, even when measured times of
    // two devices overlap slightly.
    auto const leaves_s = std::min(from.start_s + from.seconds() / 2, to.start_s);
    events.emplace(flow.from, flow_event("s", id, from, leaves_s, timeline.devices));
    auto arrives = flow_event("f", id, to, to.start_s, timeline.devices);
    arrives["bp"] = "e";  // bind to the enclosing slice, not to the next one
    events.emplace(flow.to, std::move(arrives));
  }
  return events;
}

}  // namespace detail

/// Writes \p timeline to \p out as one JSON object with one event on each line. Every device is a
/// process "device 0" with its lanes as threads; the host's lanes are threads of the process
/// "host". An action is a complete event with times in microseconds; its name says what the action
/// does and to what. Its arguments are those of the following that apply: call (the number of its
/// graph), action, slot, stage, round, micro_batch (for a parameter or gradient chunk: window),
/// layer, block and bytes. A flow is an arrow from an action to the action that waited for it.
/// \throws Error (invalid_argument) when an entry names a device that the timeline does not have,
/// or a flow an unknown entry, or when a flow leads back in time; (std::errc::io_error) when \p out
/// fails.
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
    // Readers sort by time and keep the order of equal times. A flow event binds to its slice when
    // it follows that slice directly, before other slices that begin at the same time.
    auto const [first, last] = flow_events.equal_range(i);
    for (auto event = first; event != last; ++event) {
      write(event->second);
    }
  }
  out << "\n]}\n";
  detail::require_written(out);
}

/// Writes \p timeline to the file \p path and replaces an existing file.
/// \throws Error (with the system's code) when the file cannot be written, and like the function
/// above. An unfinished file is removed.
inline void write_chrome_trace(Timeline const& timeline, std::filesystem::path const& path) {
  detail::write_trace_file(path, [&](std::ostream& out) { write_chrome_trace(timeline, out); });
}

}  // namespace roundpipe
