// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The copies of a simulation: one engine for each device and \ref CopyDirection, on shared
/// links.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/simulate/link_sharing.hpp>

#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// Each engine makes one copy at a time, each to its end: a latency, then the bytes at the current
/// rate from \ref LinkSharing. Copies take turns in the order of arrival; where streams keep
/// engines, one that arrives when its lane's copy has just ended comes first.
class CopyEngines {
 public:
  CopyEngines(LinkModel const& link, std::size_t devices)
      : sharing_(link, devices),
        engines_(directions_ * devices),
        flights_(engines_.size()),
        copied_bytes_(devices) {}

  /// Adds the copy of \p action on \p lane at \p now_s, no earlier than the last advance.
  void add(std::size_t action, Lane const& lane, Bytes bytes, double now_s);

  /// So many lanes of the host begin to work, or -\p lanes end, at \p now_s, no earlier than the
  /// last advance.
  void add_work(int lanes, double now_s);

  /// The bytes that copies of \p device have moved until \p now_s, no earlier than the last
  /// advance.
  [[nodiscard]] double copied_bytes(DeviceId device, double now_s);

  /// The end of the next copy's latency or bytes; none when there is no copy.
  [[nodiscard]] std::optional<double> next_event_s() const;

  /// Advances to \p now_s, the time of the next event. \returns the actions that end then; they are
  /// there until the next advance.
  [[nodiscard]] std::span<std::size_t const> advance(double now_s);

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  struct Copy {
    std::size_t action;
    Bytes bytes;
    LaneKind lane;
  };
  struct Engine {
    std::deque<Copy> queue;  ///< The first copy is in progress.
    double ended_s = -1;     ///< When the latest copy ended,
    LaneKind ended{};        ///< and on which lane.
  };
  /// The copies in progress, by engine. Each event looks at all of them.
  struct Flights {
    explicit Flights(std::size_t engines)
        : flows(engines, '\0'), rates(engines), bytes_left(engines), event_s(engines, never) {}

    std::string flows;               ///< 1 while a copy moves bytes: its latency is over.
    std::vector<double> rates;       ///< Bytes per second; 0 while it does not flow.
    std::vector<double> bytes_left;  ///< While it flows.
    std::vector<double> event_s;     ///< When the latency or the bytes end, at the current rate.
  };

  void begin(std::size_t engine) { flights_.event_s[engine] = now_s_ + sharing_.link().latency_s; }
  void set_flows(std::size_t engine, bool flows) {
    flights_.flows[engine] = flows ? '\1' : '\0';
    flights_.rates[engine] = 0;
    flowing_together_ = nullptr;
  }

  void move_to(double now_s);

  /// Gives each device an engine for peers. Most graphs have no copy for it, and are simulated
  /// faster without.
  void add_peers();

  /// Sets the rate of every copy in flight.
  void share();

  /// The rate of each engine that flows.
  [[nodiscard]] std::vector<double> rates() const;

  LinkSharing sharing_;
  std::size_t directions_ = 2;   // of copies; 3 with peers
  std::vector<Engine> engines_;  // for each device: by direction
  Flights flights_;
  std::vector<double> copied_bytes_;  // by device
  int working_ = 0;                   // lanes of the host
  // By what flows, of each engine: its rate. The same engines flow together again and again.
  std::unordered_map<std::string, std::vector<double>> rates_;
  std::vector<double> const* flowing_together_ = nullptr;  // what rates_ says of what flows now
  std::vector<std::size_t> ended_;                         // in the latest advance
  double now_s_ = 0;
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/simulate/impl/copy_engines.ipp>
#endif
