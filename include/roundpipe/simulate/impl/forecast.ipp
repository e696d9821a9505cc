// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/graph_sequence.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <roundpipe/simulate/simulator.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <numeric>

namespace roundpipe {

namespace detail {

/// The seconds between two turns of \p graphs, out of many consecutive turns on \p devices devices.
/// The first \p warm_up turns do not count.
[[nodiscard]] ROUNDPIPE_INLINE double steady_seconds(
    std::initializer_list<ActionGraph const*> graphs,
    std::size_t devices,
    SimulationOptions const& options,
    std::size_t warm_up) {
  // After so many turns the slots are on the same devices again.
  auto const period = devices / std::gcd(devices, (*graphs.begin())->advance);
  auto const measured = std::max<std::size_t>(period, 2);
  GraphSequence sequence(devices);
  for (std::size_t i = 0; i < warm_up + measured + 1; ++i) {  // the last one is in flight
    for (auto const* graph : graphs) {
      sequence.add(*graph);
    }
  }
  return simulate_compute_seconds(
             sequence, warm_up * graphs.size(), (warm_up + measured) * graphs.size(), options) /
         static_cast<double>(measured);
}

}  // namespace detail

ROUNDPIPE_INLINE SimulationOptions training_machine(CostModel const& costs,
                                                    DeviceProperties const& device) {
  SimulationOptions machine;
  machine.compute.layers = costs.layers();
  machine.link.upload_bytes_per_second = device.upload_bytes_per_second;
  machine.link.download_bytes_per_second = device.download_bytes_per_second;
  machine.link.peer_bytes_per_second = device.peer_bytes_per_second;
  machine.link.upload_share_both_ways = device.upload_share_both_ways;
  machine.link.download_share_both_ways = device.download_share_both_ways;
  machine.link.root_upload_bytes_per_second = device.host_upload_bytes_per_second;
  machine.link.root_download_bytes_per_second = device.host_download_bytes_per_second;
  machine.link.host_bytes_per_second = device.host_bytes_per_second;
  machine.link.host_download_weight = device.host_download_weight;
  machine.link.upload_share_beside_work = device.upload_share_beside_work;
  machine.link.download_share_beside_work = device.download_share_beside_work;
  machine.compute.host_bytes_per_second = device.host_work_bytes_per_second;
  machine.compute.device_memory_bytes_per_second = device.memory_bytes_per_second;
  machine.compute.network_bytes_per_second = costs.network().bytes_per_second;
  machine.compute.network_latency_s = costs.network().latency_s;
  machine.link.streams_keep_engines = device.streams_keep_engines;
  machine.waits_for_losses = true;
  return machine;
}

ROUNDPIPE_INLINE double forecast_call_seconds(ActionGraph const& call,
                                              SimulationOptions const& options) {
  return detail::steady_seconds({&call}, call.devices, options, 2);
}

ROUNDPIPE_INLINE double forecast_iteration_seconds(ActionGraph const& call,
                                                   ActionGraph const& step,
                                                   SimulationOptions const& options,
                                                   std::size_t warm_up) {
  return detail::steady_seconds({&call, &step}, call.devices, options, warm_up);
}

ROUNDPIPE_INLINE SimulationOptions with_link_margin(SimulationOptions machine,
                                                    std::size_t devices) {
  machine.link.upload_bytes_per_second *= 0.95;
  machine.link.download_bytes_per_second *= 0.95;
  machine.link.root_upload_bytes_per_second *= 0.9;
  machine.link.root_download_bytes_per_second *= 0.9;
  auto const of_host = devices > 1 ? 0.85 : 0.95;  // of one device, the link is its limit
  machine.link.host_bytes_per_second *= of_host;
  machine.compute.host_bytes_per_second *= of_host;
  return machine;
}

ROUNDPIPE_INLINE double forecast_training_seconds(ActionGraph const& call,
                                                  ActionGraph const& step,
                                                  CostModel const& costs,
                                                  DeviceProperties const& device) {
  auto const machine = with_link_margin(training_machine(costs, device), call.devices);
  return forecast_iteration_seconds(call, step, machine);
}

}  // namespace roundpipe
