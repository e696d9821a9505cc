// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief How ranks that are not alike divide states by memory, and rounds by speed.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/agree.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/optim/optimizer_needs.hpp>
#include <roundpipe/runtime/network_cost.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>
#include <roundpipe/runtime/policies.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace roundpipe {

/// The host memory of a rank, and what it needs of it.
struct HostRoom {
  Bytes budget = 0;
  Bytes least = 0;       ///< What the rank takes when others keep all that ranks share.
  Bytes most = 0;        ///< When it keeps all of that.
  bool is_named = true;  ///< Whether the user has named the budget.
};

/// An operation of all ranks: what \p f returns on each, by rank.
/// \throws Error as \ref agree does.
template <class F>
[[nodiscard]] auto of_all_ranks(AnyProcessGroup group, F&& f) {
  using T = std::invoke_result_t<F>;
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all;
  for (auto const& said : agree(group, GroupChannel::control, [&] {
         auto const mine = f();
         return std::string(reinterpret_cast<char const*>(&mine), sizeof(T));
       })) {
    std::memcpy(&all.emplace_back(), said.data(), sizeof(T));
  }
  return all;
}

/// How much of what ranks share each keeps, by rank: equal parts, where no rank has a named budget
/// and all have room for one; else in proportion to the part for which a rank has room.
/// \throws Error (over_budget) when a rank has no room even if others keep all, or when there is no
///         room for all on all ranks. It names the rank with the least room and the least budget
///         for it; in the second case with 1 % of all in addition, for cuts are not exact.
[[nodiscard]] std::vector<double> shares_of(std::span<HostRoom const> rooms);

/// \throws Error (over_budget) when a rank takes more than its budget, whatever it keeps: it names
///         the first such rank and the least budget for it.
void require_host_room(std::span<HostRoom const> rooms, char const* what_it_keeps);

/// An operation of all ranks, which agree on what \p options leave open: on speeds, and on shares
/// of the states by the host memory, \p plan_bytes, that a plan with certain options takes.
/// \p names_budget: whether the user has named the host's.
/// \throws Error (invalid_argument) unless there is a finite and positive share and speed, given or
///         found, for each rank; (over_budget) on all ranks when one has too little host memory; as
///         \ref agree does.
void agree_on_division(AnyProcessGroup group,
                       PipelineOptions& options,
                       CostModel const& costs,
                       std::function<Bytes(PipelineOptions const&)> const& plan_bytes,
                       bool names_budget);

/// An operation of all ranks: the network that \p options know, or, where a rank measures costs and
/// knows none, the one that all measure. None with estimated costs, and on a single rank.
/// \throws Error as \ref measure_network does.
template <DeviceList D>
[[nodiscard]] std::optional<NetworkCost> network_of(AnyProcessGroup group,
                                                    D& devices,
                                                    PipelineOptions const& options) {
  if constexpr (Backend<D>) {
    auto const measures = of_all_ranks(
        group, [&] { return options.costs == CostSource::measured && !options.network ? 1 : 0; });
    if (group.size() > 1 && std::ranges::find(measures, 1) != measures.end()) {
      auto const memory =
          devices.allocate_host(std::min(network_probe_bytes, options.host_memory / 8));
      return measure_network(group, memory.bytes());
    }
  }
  return options.network;
}

/// The host memory that a plan takes with given options.
template <DeviceList D, class Planner>
[[nodiscard]] auto host_bytes_of(D& devices,
                                 Planner const& planner,
                                 ShapedModel const& shaped,
                                 CostModel const& costs,
                                 OptimizerNeeds const& optimizer) {
  return [&](PipelineOptions const& options) {
    return total_bytes(assemble_plan(devices, planner, shaped, costs, options, optimizer).ledger,
                       LedgerLine::Space::host);
  };
}

/// Plans as \ref make_pipeline_plan does, for one of the ranks of the policies' group, and
/// completes \p options by \ref agree_on_division and \ref network_of. \p given are the user's.
template <class Model, Backend B, class O>
[[nodiscard]] PipelinePlan plan_rank(Model const& model,
                                     B& devices,
                                     ShapedModel const& shaped,
                                     PipelineOptions& options,
                                     PipelineOptions const& given,
                                     O const& optimizer,
                                     Policies const& policies) {
  auto const planner = policies.planner();
  auto const needs = needs_of(optimizer);
  // In this order: a budget also holds the code of layers that have run.
  auto costs = layer_costs(model, devices, planner, shaped, options, needs);
  auto const host_bytes = host_bytes_of(devices, planner, shaped, costs, needs);
  agree_on_division(policies.group, options, costs, host_bytes, given.host_memory > 0);
  if (auto const network = network_of(policies.group, devices, options)) {
    costs.set_network(*network);
  }
  auto const plan = [&] {
    return assemble_best_plan(devices, planner, shaped, costs, options, needs);
  };
  if (options.ranks == 1) {
    return plan();
  }
  std::optional<PipelinePlan> made;
  auto const rooms = of_all_ranks(policies.group, [&] {
    HostRoom room{.budget = options.host_memory};
    try {
      made = plan();
    } catch (Error const&) {
      room.least = host_bytes(quick_options(options));
      if (room.least <= room.budget) {
        throw;  // something else is wrong
      }
    }
    return room;
  });
  require_host_room(rooms, "with its part of the optimizer states");
  return *std::move(made);
}

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/impl/rank_division.ipp>
#endif
