// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/adaws/adaws_terms.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/plan/plan_options.hpp>
#include <roundpipe/plan/stage_plan.hpp>
#include <roundpipe/runtime/explain.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <roundpipe/runtime/pipeline_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

/// Reads one plan.
class PlanReader {
 public:
  PlanReader(PipelinePlan const& plan, PipelineOptions const& options)
      : plan_(plan), options_(options), sizes_(plan_options(options)) {
    sizes_.devices = plan.graph.devices;
  }

  [[nodiscard]] Decision stages() const {
    auto const& [forward, backward] = plan_.stages.partition;
    auto const fused = number(backward.front().count);
    if (is_one_stage()) {
      return {"stages",
              "one, of " + fused + " layers",
              "the device has room for all, and nothing runs twice"};
    }
    return {"stages",
            "forward " + counts(forward) + "; fused " + fused + "; backward " +
                counts(std::span(backward).subspan(1)) + " layers",
            "the fused one runs its layers forward once; the others run twice where their saves "
            "are not kept"};
  }

  [[nodiscard]] Decision checkpoints() const {
    if (is_one_stage()) {
      return {"checkpoints", "none", "there is one stage"};
    }
    auto const of_layers = set().checkpoints() == Checkpoints::layers;
    bool const follows = !options_.checkpoints && of_layers && pins_saves();
    return {"checkpoints",
            of_layers ? "behind every layer" : "behind stages",
            follows ? "saves that are pinned need them"
                    : why(options_.checkpoints.has_value(), "faster by forecast, or as fast")};
  }

  [[nodiscard]] Decision saves() const {
    if (is_one_stage()) {
      return {"saves", "all stay on the device", "the stage runs backward at once"};
    }
    auto const kept = kept_saves();
    if (kept.all == 0) {
      return {"saves", "none before the fused stage", "these layers save nothing"};
    }
    auto const is_pinned = pins_saves();
    if (kept.by_level.empty()) {
      return {
          "saves",
          "those of the fused stage stay on the device, the others are recomputed",
          !is_pinned && set().checkpoints() == Checkpoints::stages
              ? "save levels need checkpoints behind every layer"
              : why(is_pinned, "no save level that the link carries and the host holds is faster")};
    }
    std::string text;
    for (auto const& [level, count] : kept.by_level) {
      text += (text.empty() ? "" : ", ") + number(count) + " at level " + number(level.second) +
              " of " + number(level.first);
    }
    return {"saves",
            "of a call's " + number(kept.all) + " before the fused stage the host keeps " + text +
                "; the rest is recomputed, those of the fused stage stay on the device",
            why(is_pinned, "faster by forecast")};
  }

  [[nodiscard]] Decision overlap() const {
    if (is_one_stage() || sizes_.rounds == 1) {
      return {"overlap", "none", is_one_stage() ? "there is one stage" : "a call has one round"};
    }
    auto const overlaps = set().overlaps_rounds();
    auto const is_sought = !pins_saves() && options_.checkpoints != Checkpoints::stages;
    return {"overlap",
            overlaps ? "a round's forward takes turns with the backward of the round before"
                     : "rounds run one after another",
            why(options_.overlaps_rounds.has_value(),
                overlaps    ? "faster by forecast"
                : is_sought ? "with overlap no plan is clearly faster by forecast"
                            : "overlap is not sought beside pinned checkpoints or saves")};
  }

  [[nodiscard]] Decision parameters() const {
    auto const stay = plan_.stages.memory.resident_parameters.size();
    if (is_one_stage() && stay == 0) {
      return {"parameters", "go up once a round", "there is one stage"};
    }
    if (stay == 0) {
      return {"parameters", "go up for each stage", why_none(options_.resident_parameters)};
    }
    return {"parameters",
            number(stay) + " of " + number(plan_.blocks.blocks.size()) + " blocks stay on the " +
                devices() + " for a call, in " +
                format_bytes(plan_.stages.memory.resident_parameter_bytes()),
            is_one_stage() ? "one stage with one entry reads them all"
                           : why(options_.resident_parameters.has_value(), "faster by forecast")};
  }

  [[nodiscard]] Decision boundaries() const {
    if (is_one_stage()) {
      return {"boundaries", "none", "there is one stage"};
    }
    auto const& stages = plan_.stages;
    if (stages.resident.empty() && stages.sent.empty()) {
      return {"boundaries", "all pass through the host", why_none(options_.resident_boundaries)};
    }
    auto const stay = [&](BufferKind kind) {
      return number(static_cast<std::size_t>(std::count_if(
          stages.resident.begin(), stages.resident.end(), [&](MadeBoundary const& made) {
            return made.kind == kind;
          })));
    };
    auto const& room = stages.memory.resident;
    return {"boundaries",
            "of a round " + stay(BufferKind::checkpoint) + " checkpoints and " +
                stay(BufferKind::boundary_gradient) + " gradients stay on " +
                (sends() > 0 ? "devices" : "the " + devices()) + ", in " +
                format_bytes(room.checkpoints.entry_bytes * room.checkpoints.count +
                             room.gradients.entry_bytes * room.gradients.count),
            why(options_.resident_boundaries.has_value(), "faster by forecast, or as fast")};
  }

  [[nodiscard]] Decision peers() const {
    if (auto const count = sends(); count > 0) {
      return {"peers",
              "of a call " + number(count) + " boundaries go from device to device, of a round " +
                  number(plan_.stages.sent.size()) + " to the host as well",
              why(options_.peer_boundaries.has_value(), "faster by forecast, or as fast")};
    }
    return {"peers",
            "no boundary goes from device to device",
            is_one_stage() ? "there is one stage"
                           : why(options_.peer_boundaries.has_value(),
                                 "devices do not reach each other, or nothing is gained")};
  }

  [[nodiscard]] Decision buffering() const {
    auto const& entries = plan_.stages.memory.buffering;
    auto const value =
        "entries of parameters " + number(entries.parameters) + ", gradients " +
        number(entries.gradients) + ", activations " + number(entries.activations) +
        (plan_.stages.memory.ring(BufferKind::saves).count > 0 ? ", saves " + number(entries.saves)
                                                               : "");
    if (options_.buffering) {
      return {"buffering", value, "pinned"};
    }
    if (entries.parameters > 1 && entries.gradients > 1) {
      return {"buffering", value, "every copy has room beside compute"};
    }
    auto const wide = bytes_with_two_entries();
    auto const fits = options_.device_memory == 0 || wide <= options_.device_memory;
    return {"buffering",
            value,
            "two of each would take " + format_bytes(wide) +
                (!fits               ? ", more than the budget"
                 : options_.forecast ? ", and the forecast gains nothing by them"
                                     : "")};
  }

  [[nodiscard]] Decision adaws() const {
    return {"as AdaWS", to_string(adaws_terms(plan_.model, plan_.stages, sizes_)), {}};
  }

 private:
  /// Saves of layers before the fused stage, of a layer and a micro-batch each, in all rounds.
  struct KeptSaves {
    std::size_t all = 0;
    /// By the layer's highest level and the one that the host keeps, how many.
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> by_level;
  };

  [[nodiscard]] static std::string number(std::size_t n) { return std::to_string(n); }
  /// "2 (14x), 3"
  [[nodiscard]] static std::string counts(std::span<LayerRange const> stages) {
    std::string text;
    for (std::size_t i = 0; i < stages.size();) {
      auto const first = i;
      while (i < stages.size() && stages[i].count == stages[first].count) {
        ++i;
      }
      text += (text.empty() ? "" : ", ") + number(stages[first].count) +
              (i - first > 1 ? " (" + number(i - first) + "x)" : "");
    }
    return text.empty() ? "none" : text;
  }

  [[nodiscard]] std::string why(bool is_pinned, char const* by_forecast) const {
    return is_pinned ? "pinned" : options_.forecast ? by_forecast : "without a forecast";
  }
  /// Why nothing stays.
  [[nodiscard]] std::string why_none(std::optional<bool> const& pin) const {
    return pin == true ? "pinned, but there is no room for any, or none to keep"
                       : why(pin.has_value(), "no room, or nothing gained");
  }

  [[nodiscard]] bool is_one_stage() const { return plan_.stages.partition.forward.empty(); }
  [[nodiscard]] WorkingSet const& set() const { return plan_.host.working_set; }
  [[nodiscard]] bool pins_saves() const {
    return options_.offloaded_micro_batches || options_.save_levels;
  }
  [[nodiscard]] std::string devices() const { return sizes_.devices > 1 ? "devices" : "device"; }
  [[nodiscard]] std::size_t sends() const {
    auto const& actions = plan_.graph.actions;
    return static_cast<std::size_t>(
        std::count_if(actions.begin(), actions.end(), [](Action const& action) {
          return action.kind == ActionKind::send_boundary;
        }));
  }

  [[nodiscard]] KeptSaves kept_saves() const {
    KeptSaves kept;
    auto const end = plan_.stages.partition.backward.front().first;
    for (std::size_t layer = 0; layer < end; ++layer) {
      auto const levels = plan_.model.layers[layer].save_levels.size();
      if (levels < 2) {
        continue;  // it saves nothing
      }
      kept.all += sizes_.rounds * sizes_.micro_batches_per_round;
      for (std::size_t round = 0; round < sizes_.rounds; ++round) {
        for (std::size_t m = 0; m < sizes_.micro_batches_per_round; ++m) {
          if (auto const level = set().of_round(round).level(layer, m); level > 0) {
            ++kept.by_level[{levels - 1, level}];
          }
        }
      }
    }
    return kept;
  }

  /// What a device would hold of these stages if no ring had one entry.
  [[nodiscard]] Bytes bytes_with_two_entries() const {
    auto const& stages = plan_.stages;
    auto entries = stages.memory.buffering;
    entries.parameters = entries.gradients = entries.activations = 2;
    auto const memory =
        is_one_stage() ? lay_out_stages(plan_.model, plan_.blocks, stages.partition, entries).memory
                       : memory_with(stages, entries);
    return total_bytes(plan_.ledger, LedgerLine::Space::device) - stages.memory.bytes +
           memory.bytes;
  }

  PipelinePlan const& plan_;
  PipelineOptions const& options_;
  PlanOptions sizes_;
};

}  // namespace detail

ROUNDPIPE_INLINE std::string to_string(Decision const& decision) {
  constexpr std::size_t width = 13;
  auto const gap = width - std::min(width - 1, decision.name.size());
  return decision.name + std::string(gap, ' ') + decision.value +
         (decision.reason.empty() ? "" : "; " + decision.reason);
}

ROUNDPIPE_INLINE std::vector<Decision> explain(PipelinePlan const& plan,
                                               PipelineOptions const& options) {
  detail::PlanReader const reader(plan, options);
  std::vector<Decision> decisions{reader.stages(),
                                  reader.checkpoints(),
                                  reader.saves(),
                                  reader.overlap(),
                                  reader.parameters(),
                                  reader.boundaries()};
  if (plan.graph.devices > 1) {
    decisions.push_back(reader.peers());
  }
  decisions.push_back(reader.buffering());
  if (plan.graph.devices == 1) {
    decisions.push_back(reader.adaws());
  }
  return decisions;
}

}  // namespace roundpipe
