// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What a user decides about a pipeline.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/memory/host_memory_plan.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/optim/loss_scale.hpp>
#include <roundpipe/system/host_memory_limit.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace roundpipe {

/// Where the times that stages are balanced by come from.
enum class CostSource {
  estimated,  ///< From FLOPs and bytes.
  measured,   ///< By running every layer a few times before step 1.
};

/// When a step's updates begin.
enum class StepStart {
  /// All after the last gradient of the iteration. A failed iteration leaves the weights and states
  /// of the last finished step, and `Pipeline::recover` goes on from there.
  all_blocks,
  /// Each block's as soon as its gradient has landed, while backward goes on. Faster with one
  /// master copy and with staleness 0; but an error of a device in that time leaves the step
  /// half done, and the weights are lost.
  each_block,
};

/// Options of \ref Pipeline.
struct PipelineOptions {
  BatchShape capacity{};                    ///< Largest extents of a micro-batch.
  std::size_t micro_batches_per_round = 1;  ///< M_R: micro-batches of a round.
  /// R: rounds of a call. Ranks have together H times as many, each R of them, or see \ref
  /// rank_speeds.
  std::size_t rounds = 1;
  /// Most calls between two steps. More than 1 takes host memory: gradients then are summed there.
  std::size_t calls_per_step = 1;
  std::size_t devices = 0;  ///< Devices to use; 0: all of the backend.
  /// H: processes that train together. A pipeline takes the size of its group.
  std::size_t ranks = 1;
  std::size_t rank = 0;  ///< Of this process among them. A pipeline takes that of its group.
  /// Whether each of several ranks updates a share of every block alone, and keeps gradient sums,
  /// optimizer copy and states of that alone (ZeRO stage 1); updated weights are gathered. The bits
  /// are the same. Reading weights and gradients are then operations of all ranks, and after an
  /// error throw Errc::aborted; \c state has this rank's share.
  bool shard_states = true;
  /// By rank, the same on all: how much of every block it keeps, in proportion. Empty: equal parts,
  /// or, where a rank names \ref host_memory or has no room for an equal one, as much as it has
  /// room for, in proportion; see \ref shares_of.
  std::vector<double> rank_shares{};
  /// By rank, the same on all: how fast it is. The rounds of all ranks are dealt by it (\ref
  /// deal_rounds), so that they end at about the same time. Empty: each has as many. The weights
  /// are the same bits in any case.
  std::vector<double> rank_speeds{};
  /// Whether ranks find out how fast they are: micro-batches a second on all devices, by \ref
  /// costs, which may be measured. It takes the place of \ref rank_speeds.
  bool measures_rank_speeds = false;
  /// Budget of each device, in which all counts that this process holds there, as far as the
  /// backend tells (`overhead_bytes`). 0: the backend's limit for slabs.
  Bytes device_memory = 0;
  Bytes host_memory = 0;   ///< Budget of the host; 0: what this process may take.
  double clip_norm = 0;    ///< Largest global norm of a step's gradient; 0: no clipping.
  std::uint64_t seed = 0;  ///< Of first values, of dropout, and of stochastic rounding.
  StateType state_type = StateType::fp32;        ///< What the optimizer keeps.
  std::optional<LossScaleOptions> loss_scale{};  ///< For f16; a step that overflows is skipped.
  /// Steps that clip or have a loss scale begin with all blocks in any case.
  StepStart step_start = StepStart::all_blocks;
  /// Where any of several ranks measures, and has no \ref network, all measure their network, too,
  /// see \ref measure_network.
  CostSource costs = CostSource::estimated;
  /// The costs of the layers at \ref capacity, where they are known already: \ref automatic has
  /// measured them. They replace \ref costs.
  std::optional<CostModel> known_costs = std::nullopt;
  /// What exchanges of several ranks take, where that is known already: \ref automatic has measured
  /// it. None: as \ref known_costs have it, or as it is measured.
  std::optional<NetworkCost> network = std::nullopt;
  /// Where measured costs are kept from one process to the next: those that the file has are not
  /// measured again, those that it lacks are added. See \ref cost_key for what they depend on.
  /// Empty: nowhere.
  std::string cost_file{};
  /// The seconds of an iteration, which is a call and a step. Where fewer ring entries leave room
  /// for larger stages, the plan with the least seconds is taken; without a forecast, the plan with
  /// most entries. \ref forecast_training_seconds is one. None is asked about plans that lose
  /// because their layers or their copies take longer (\ref least_training_seconds), so one that
  /// finds plans faster than that misses some.
  std::function<double(ActionGraph const& call,
                       ActionGraph const& step,
                       CostModel const& costs,
                       DeviceProperties const& device)>
      forecast{};
  /// The seconds of an iteration with other options, by \ref forecast. Plans that cannot come near
  /// it have no forecast, and the search for rounds that overlap ends early where it finds none
  /// that does. \ref automatic sets it to those of the best of the cuts before, so it is soon done
  /// with cuts that lose. Where nothing beats it, as with options that have changed since, a \ref
  /// Pipeline is planned once more without it.
  double seconds_to_beat = std::numeric_limits<double>::infinity();
  /// Whether a refusal names the least budget of a device that would do. To find it takes longest.
  bool names_least_budget = true;
  /// Which boundaries the host saves between forward and backward. None: those that make an
  /// iteration fastest by \ref forecast; without a forecast, those between stages, unless saves are
  /// offloaded.
  std::optional<Checkpoints> checkpoints = std::nullopt;
  /// Of how many micro-batches of a round the host keeps all that layers save between forward and
  /// backward, which then recomputes nothing. None: for each layer and micro-batch the save level
  /// that makes an iteration fastest by \ref forecast; without a forecast, 0. More than 0 takes
  /// checkpoints of all layers. The weights are the same bits in any case.
  std::optional<std::size_t> offloaded_micro_batches = std::nullopt;
  /// Of each layer and micro-batch of a round: the save level that the host keeps, see \ref
  /// WorkingSet. It takes the place of the two choices above. None: theirs.
  std::optional<std::vector<std::vector<std::size_t>>> save_levels = std::nullopt;
  /// The same of rounds of a call that have others, by round: the first one's forward overlaps with
  /// nothing, nor does the last one's backward.
  std::map<std::size_t, std::vector<std::vector<std::size_t>>> levels_of_rounds{};
  /// Whether a round's forward stages run in turn with the backward stages of the round before, so
  /// that saves have the time of both to go to the host and back. None: where that is faster by
  /// \ref forecast; without a forecast, no. The weights are the same bits in any case.
  std::optional<bool> overlaps_rounds = std::nullopt;
  /// Whether boundaries between stages, checkpoints, and gradients of boundaries stay on the device
  /// that makes them, where all stages that read them run there: as many as the plan leaves room
  /// for. Nothing of them is copied, and the host holds nothing of them. None: unless an iteration
  /// takes longer by \ref forecast; without a forecast, no. The weights are the same bits in any
  /// case.
  std::optional<bool> resident_boundaries = std::nullopt;
  /// Whether blocks of parameters that a device reads in several stages of a call stay on devices
  /// that long, as many as the plan leaves room for: each goes up once a call in place of once a
  /// stage. None: unless an iteration takes longer by \ref forecast; without a forecast, no. The
  /// weights are the same bits in any case.
  std::optional<bool> resident_parameters = std::nullopt;
  /// Whether boundaries and gradients of boundaries that a stage on another device reads go there
  /// from device to device, as many as the plan leaves room for; with room to spare also what later
  /// stages read again. The host then copies nothing of them, and holds nothing of those that it
  /// keeps for no other stage. None: where devices reach each other (`reaches_peers` of \ref
  /// DeviceProperties), unless an iteration takes longer by \ref forecast; without a forecast, no.
  /// The weights are the same bits in any case.
  std::optional<bool> peer_boundaries = std::nullopt;
  /// How many entries the rings of devices have: with two, a copy runs beside compute. Each from 1
  /// to \ref most_ring_entries. None: those that make an iteration fastest by \ref forecast;
  /// without a forecast, the most with which stages fit. The weights are the same bits in any case.
  std::optional<Buffering> buffering = std::nullopt;
  /// Threads that update parameters. 0: one for each usable core that no issuing thread needs.
  std::size_t optimizer_threads = 0;
  /// Lets the first value stop the pipeline that is NaN or infinite: of a layer's outputs, results,
  /// input gradients and sums of parameter gradients, and with a loss scale, under which a backward
  /// may overflow, of outputs and results alone. The error names layer, direction, micro-batch,
  /// tensor and element. For finding a fault: each device waits for each pass and for the copies of
  /// all that it has written, and hides no transfer. Takes 1 MiB of the host a device.
  bool check_finite = false;
  bool verify = true;              ///< Whether the plan's graphs are checked before step 1.
  std::size_t timeline_calls = 0;  ///< How many of the latest runs `timeline()` keeps; 0: none.
};

/// \p options for a training of the ranks of \p group.
[[nodiscard]] inline PipelineOptions with_ranks(PipelineOptions options,
                                                AnyProcessGroup const& group) {
  options.ranks = group.size();
  options.rank = group.rank();
  return options;
}

/// More than a machine has CPUs.
inline constexpr std::size_t most_optimizer_threads = 4096;

/// \p options with what they leave to \p devices and to the machine.
/// \throws Error (invalid_argument) for options that make no sense, or more devices than there are.
template <DeviceList D>
[[nodiscard]] PipelineOptions complete_options(PipelineOptions options, D& devices) {
  require(options.clip_norm >= 0 && std::isfinite(options.clip_norm),
          Errc::invalid_argument,
          "the norm to clip at is finite and not negative; 0 is off");
  require(options.cost_file.empty() || options.costs == CostSource::measured,
          Errc::invalid_argument,
          "a file of costs is for measured ones: costs must be CostSource::measured");
  if (options.devices == 0) {
    options.devices = devices.device_count();
  }
  require(options.devices <= devices.device_count(),
          Errc::invalid_argument,
          "more devices are asked for than there are");
  require(
      options.calls_per_step > 0, Errc::invalid_argument, "there is at least one call in a step");
  if (options.optimizer_threads > most_optimizer_threads) {
    throw Error(Errc::invalid_argument,
                "optimizer_threads is " + std::to_string(options.optimizer_threads) +
                    ", more than " + std::to_string(most_optimizer_threads));
  }
  if (options.host_memory == 0) {
    options.host_memory = host_memory_limit();
  }
  return options;
}

}  // namespace roundpipe
