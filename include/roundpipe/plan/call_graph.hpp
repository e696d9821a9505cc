// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Builds the graph of one call from stages, slots, chunks and the ordering rules.

#include <roundpipe/concepts/event_protocol.hpp>
#include <roundpipe/concepts/schedule.hpp>
#include <roundpipe/concepts/transfer_policy.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/graph_builder.hpp>
#include <roundpipe/plan/memory_plan.hpp>
#include <roundpipe/plan/parameter_blocks.hpp>
#include <roundpipe/plan/slot_order.hpp>
#include <roundpipe/plan/stage_chunks.hpp>
#include <roundpipe/plan/stage_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

/// How many rounds' boundaries the host holds: one is written while the round before is read.
inline constexpr std::size_t host_ring_entries = 2;

/// What a call's graph is built from. The references must live until the graph is built.
struct CallGraphInput {
  ParameterBlocks const& blocks;
  std::span<StageLayout const> stages;  ///< In execution order; the last one of an evaluation is
                                        ///< of kind `evaluate`.
  ScheduleShape shape;
  DeviceTasks const& tasks;
  std::size_t advance = 0;
  std::size_t ring_stride = 1;  ///< Micro-batches of a *planned* round: numbers the host's rings.
  Buffering buffering;
  ChunkFunction chunks;
  /// What an event waits for (`EventProtocol::before`).
  std::function<std::vector<BlockEvent>(BlockEvent)> before;
};

namespace detail {

class CallGraphBuilder {
 public:
  explicit CallGraphBuilder(CallGraphInput const& input)
      : in_(input),
        graph_(input.shape.devices),
        slots_(order_slots(input.shape, input.tasks)),
        work_(slots_.size()) {
    for (auto const& stage : in_.stages) {
      auto const cut = [&](auto const& wanted) {
        return cut_stage(in_.blocks, stage, micro_batches(), in_.chunks, wanted);
      };
      parameter_chunks_.push_back(cut([](UsePlace const&) { return true; }));
      ordered_chunks_.push_back(in_layer_order(parameter_chunks_.back(), in_.blocks, stage));
      gradient_chunks_.push_back(
          cut([&](UsePlace const& place) { return stage.has_backward() && place.trains; }));
    }
  }

  [[nodiscard]] ActionGraph build() && {
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      add_slot(SlotId(s));
    }
    // The last slots of the devices, in their order, so that rounds are summed in theirs.
    for (std::size_t s = 0; s < slots_.size(); ++s) {
      if (!slots_[s].next.valid() && in_.buffering.gradients >= 2) {
        add_own_gradients(SlotId(s));
      }
    }
    return std::move(graph_).finish(in_.advance);
  }

 private:
  /// What a slot has brought into the graph so far.
  struct SlotWork {
    std::optional<Buffer> parameters;
    std::optional<Buffer> gradients;
    std::map<std::size_t, ActionId> uploaded;       // by use: the last chunk with a piece of it
    std::vector<std::optional<Buffer>> entries_in;  // by micro-batch
    std::vector<std::optional<Buffer>> entries_out;
    std::vector<ActionId> activation_up;
    std::vector<ActionId> gradient_up;
    std::vector<ActionId> last_compute;
    std::vector<ActionId> activation_down;
    std::map<std::size_t, ActionId> last_backward;  // by layer, of the last micro-batch
  };

  using Producers = std::map<Buffer, ActionId>;

  [[nodiscard]] std::size_t micro_batches() const noexcept { return in_.shape.micro_batches; }
  [[nodiscard]] StageLayout const& stage_of(SlotId slot) const {
    return in_.stages[slots_[slot.index()].stage.index()];
  }

  [[nodiscard]] Action make(SlotId slot, ActionKind kind, LaneKind lane, std::size_t micro) const {
    auto const& s = slots_[slot.index()];
    Action action;
    action.kind = kind;
    action.lane = {lane, s.device};
    action.slot = slot;
    action.stage = s.stage;
    action.round = s.round;
    action.micro_batch = MicroBatchId(micro);
    return action;
  }

  [[nodiscard]] Ring host_ring(BufferKind kind, std::size_t boundary, std::size_t micro) const {
    return {kind, DeviceId::none(), boundary * in_.ring_stride + micro};
  }

  static void wait_for(Action& action, ActionId id) {
    if (id.valid()) {
      action.waits.push_back(id);
    }
  }

  void wait_for_rules(Action& action, BlockEvent event) const {
    auto const events = in_.before(event);
    action.block_waits.insert(action.block_waits.end(), events.begin(), events.end());
  }

  void add_slot(SlotId id) {
    auto const& slot = slots_[id.index()];
    auto& work = work_[id.index()];
    work.entries_in.resize(micro_batches());
    work.entries_out.resize(micro_batches());
    work.activation_up.resize(micro_batches());
    work.gradient_up.resize(micro_batches());
    work.last_compute.resize(micro_batches());
    work.activation_down.resize(micro_batches());

    auto const ahead = in_.buffering.activations;  // this micro-batch and those behind it
    for (std::size_t w = 0; w < micro_batches(); ++w) {
      for (auto m = w == 0 ? 0 : w + ahead - 1; m < std::min(w + ahead, micro_batches()); ++m) {
        add_activation_up(id, m);
      }
      if (w == 0) {
        add_own_parameters(id);
      }
      if (slot.next.valid() && in_.buffering.parameters >= 2) {
        add_parameter_window(id, w);
      }
      if (slot.previous.valid() && in_.buffering.gradients >= 2) {
        add_gradient_window(id, w);
      }
      add_compute(id, w);
      add_activation_down(id, w);
    }
    if (in_.buffering.gradients < 2) {
      add_own_gradients(id);
    }
  }

  /// The gradients of slot \p id where there are no windows to come down in: behind the slot's last
  /// activation copy.
  void add_own_gradients(SlotId id) {
    for (auto const& chunk : gradient_chunks(id)) {
      add_gradient_chunk(id, chunk, {last_down(id, micro_batches())}, SlotId::none());
    }
  }

  [[nodiscard]] std::vector<StageChunk> const& parameter_chunks(SlotId slot) const {
    return parameter_chunks_[slots_[slot.index()].stage.index()];
  }
  [[nodiscard]] std::vector<StageChunk> const& gradient_chunks(SlotId slot) const {
    return gradient_chunks_[slots_[slot.index()].stage.index()];
  }

  /// Whether the chunks of the last window wait for the first activation copy of the slot that they
  /// belong to. With more micro-batches than devices that activation is there by then; with fewer,
  /// the chunks would stand exposed behind it.
  [[nodiscard]] bool last_window_waits() const noexcept {
    return micro_batches() > in_.shape.devices;
  }

  /// What is left of the parameters of slot \p id when its first activations go up: all of them
  /// where there were no windows to go up in, so that layers begin while the next ones' go up; else
  /// the chunks of the last window.
  void add_own_parameters(SlotId id) {
    auto const& slot = slots_[id.index()];
    if (slot.previous.valid() && in_.buffering.parameters >= 2) {
      auto const& work = work_[id.index()];
      for (auto const& chunk : parameter_chunks(id)) {
        if (last_window_waits() && chunk.gated && chunk.window + 1 == micro_batches()) {
          add_parameter_chunk(id,
                              chunk,
                              {window_start(slot.previous, chunk.window),
                               work.activation_up.front(),
                               work.gradient_up.front()},
                              slot.previous);
        }
      }
      return;
    }
    for (auto const& chunk : ordered_chunks_[slot.stage.index()]) {
      add_parameter_chunk(id, chunk, {}, SlotId::none());
    }
  }

  /// The end of the compute before window \p w of slot \p id on its device, or none.
  [[nodiscard]] ActionId window_start(SlotId id, std::size_t w) const {
    if (w > 0) {
      return work_[id.index()].last_compute[w - 1];
    }
    auto const previous = slots_[id.index()].previous;
    return previous.valid() ? work_[previous.index()].last_compute.back() : ActionId::none();
  }

  /// The end of the compute that makes room for what goes up for micro-batch \p m: a window begins
  /// with it, so that activations go up as early as planned, and no earlier.
  [[nodiscard]] ActionId upload_window_start(SlotId id, std::size_t m) const {
    auto back = in_.buffering.activations;
    while (id.valid() && m < back) {
      back -= m;
      m = micro_batches();
      id = slots_[id.index()].previous;
    }
    return id.valid() ? work_[id.index()].last_compute[m - back] : ActionId::none();
  }

  /// Parameters of the device's next slot, in window \p w of slot \p id: behind the activation
  /// copies that go up in this window.
  void add_parameter_window(SlotId id, std::size_t w) {
    auto const& slot = slots_[id.index()];
    auto const& work = work_[id.index()];
    auto const up = std::min(w + in_.buffering.activations, micro_batches()) - 1;
    for (auto const& chunk : parameter_chunks(slot.next)) {
      auto const later = chunk.gated && w + 1 == micro_batches() && last_window_waits();
      if (chunk.window == w && !later) {
        std::vector<ActionId> gates;
        if (chunk.gated) {
          gates = {window_start(id, w), work.activation_up[up], work.gradient_up[up]};
        }
        add_parameter_chunk(slot.next, chunk, gates, id);
      }
    }
  }

  /// The last activation copy down that is due in window \p w of slot \p id or before, or none.
  /// Slots at the end of the backward hand on nothing.
  [[nodiscard]] ActionId last_down(SlotId id, std::size_t w) const {
    while (id.valid()) {
      auto const& down = work_[id.index()].activation_down;
      while (w > 0) {
        if (down[--w].valid()) {
          return down[w];
        }
      }
      id = slots_[id.index()].previous;
      w = micro_batches();
    }
    return ActionId::none();
  }

  /// Gradients of the device's previous slot, in window \p w of slot \p id: behind the activation
  /// copy that goes down in this window.
  void add_gradient_window(SlotId id, std::size_t w) {
    auto const previous = slots_[id.index()].previous;
    for (auto const& chunk : gradient_chunks(previous)) {
      if (chunk.window == w) {
        std::vector<ActionId> gates;
        if (chunk.gated) {
          gates = {window_start(id, w), last_down(id, w)};
        }
        add_gradient_chunk(previous, chunk, gates, id);
      }
    }
  }

  [[nodiscard]] Action make_chunk(SlotId id,
                                  ActionKind kind,
                                  LaneKind lane,
                                  StageChunk const& chunk,
                                  std::vector<ActionId> const& gates,
                                  SlotId window_slot) const {
    auto action = make(id, kind, lane, chunk.window);
    action.pieces = chunk.pieces;
    action.bytes = chunk.bytes;
    action.gated = chunk.gated;
    action.window_slot = window_slot;
    for (auto const gate : gates) {
      wait_for(action, gate);
    }
    return action;
  }

  /// The blocks of \p chunk's pieces that change, each once: nothing orders the uploads of others.
  [[nodiscard]] std::set<BlockId> trained_blocks_of(StageChunk const& chunk) const {
    std::set<BlockId> blocks;
    for (auto const use : chunk.uses) {
      if (in_.blocks.trains(use)) {
        blocks.insert(in_.blocks.uses[use].block);
      }
    }
    return blocks;
  }

  [[nodiscard]] static Buffer of_block(BufferKind kind, BlockId block) {
    return {{kind, DeviceId::none(), block.index()}, 0};
  }

  /// Adds a chunk of the parameters of slot \p id. \p window_slot: in whose windows it goes up;
  /// none: outside of this call's, so that it goes up in those of the device's last slot before.
  void add_parameter_chunk(SlotId id,
                           StageChunk const& chunk,
                           std::vector<ActionId> const& gates,
                           SlotId window_slot) {
    auto& work = work_[id.index()];
    auto action = make_chunk(
        id, ActionKind::upload_parameters, LaneKind::parameter_up, chunk, gates, window_slot);
    if (chunk.gated && !window_slot.valid()) {  // the windows of the call before, from their end
      auto const up = std::min(chunk.window + in_.buffering.activations, micro_batches());
      action.lane_waits.push_back({LaneKind::activation_up, micro_batches() - up});
    }
    if (!work.parameters) {
      work.parameters = graph_.acquire(
          {BufferKind::parameters, action.lane.device, 0}, in_.buffering.parameters, action);
    }
    action.writes.push_back(*work.parameters);
    auto const blocks = trained_blocks_of(chunk);
    for (auto const block : blocks) {
      action.reads.push_back(of_block(BufferKind::master, block));
      wait_for_rules(action, {block, BlockEventKind::upload});
    }
    auto const added = graph_.add(std::move(action));
    for (auto const use : chunk.uses) {
      work.uploaded[use] = added;
    }
    for (auto const block : blocks) {
      graph_.publish({block, BlockEventKind::upload}, added);
    }
  }

  /// Adds a chunk of the gradients of slot \p id, to where the optimizer reads them or, where they
  /// are summed, to their landings. \p window_slot: as for parameters.
  void add_gradient_chunk(SlotId id,
                          StageChunk const& chunk,
                          std::vector<ActionId> const& gates,
                          SlotId window_slot) {
    auto& work = work_[id.index()];
    auto action = make_chunk(
        id, ActionKind::download_gradients, LaneKind::gradient_down, chunk, gates, window_slot);
    action.reads.push_back(work.gradients.value());
    for (auto const use : chunk.uses) {
      wait_for(action, work.last_backward.at(in_.blocks.uses[use].layer.index()));
      if (in_.blocks.block_of(use).sums_gradient) {
        action.writes.push_back(landing_of(id, use, action));
      } else {
        auto const block = in_.blocks.uses[use].block;
        action.writes.push_back(of_block(BufferKind::gradient, block));
        wait_for_rules(action, {block, BlockEventKind::gradient_write});
      }
    }
    auto const round = action.round;
    auto const added = graph_.add(std::move(action));
    for (auto const use : chunk.uses) {
      auto const block = in_.blocks.uses[use].block;
      if (!in_.blocks.block_of(use).sums_gradient) {
        graph_.publish({block, BlockEventKind::gradient_write}, added);
        continue;
      }
      auto& landing = landings_[{use, round.index()}];
      landing.landed = added;
      if (--landing.chunks == 0) {
        add_accumulations(block, round);
      }
    }
  }

  /// Where the gradient of \p use lands; \p action, its first chunk, waits until the place is free.
  [[nodiscard]] Buffer landing_of(SlotId id, std::size_t use, Action& action) {
    auto& landing = landings_[{use, action.round.index()}];
    if (!landing.buffer) {
      require(landings_waiting_[use] == 0,
              Errc::unsupported,
              "the schedule lands a gradient before the round before is summed");
      ++landings_waiting_[use];
      landing.buffer = graph_.acquire({BufferKind::landing, DeviceId::none(), use}, 1, action);
      landing.chunks = count_chunks(gradient_chunks(id), use);
    }
    return *landing.buffer;
  }

  /// Adds the accumulations of \p block in \p round that are due: a block's uses in layer order.
  void add_accumulations(BlockId block, RoundId round) {
    auto const& uses = in_.blocks.blocks[block.index()].uses;
    auto& next = accumulated_[{block.index(), round.index()}];
    for (; next < uses.size(); ++next) {
      auto const found = landings_.find({uses[next], round.index()});
      if (found == landings_.end() || !found->second.buffer || found->second.chunks > 0) {
        return;
      }
      Action action;
      action.kind = ActionKind::accumulate_gradient;
      action.lane = {LaneKind::accumulate, DeviceId::none()};
      action.round = round;
      action.block = block;
      action.use = uses[next];
      action.layer = in_.blocks.uses[uses[next]].layer;
      action.first = next == 0 && round.index() == 0;
      action.bytes = in_.blocks.blocks[block.index()].master.bytes();
      action.reads.push_back(*found->second.buffer);
      action.writes.push_back(of_block(BufferKind::gradient, block));
      wait_for(action, found->second.landed);
      wait_for_rules(action, {block, BlockEventKind::gradient_write});
      auto const added = graph_.add(std::move(action));
      graph_.publish({block, BlockEventKind::gradient_write}, added);
      --landings_waiting_[uses[next]];
    }
  }

  /// The micro-batch's entry for what comes in, acquired by the first action that needs it.
  Buffer entry_in(SlotId id, std::size_t m, Action& action) {
    auto& entry = work_[id.index()].entries_in[m];
    if (!entry) {
      entry = graph_.acquire({BufferKind::activations_in, slots_[id.index()].device, 0},
                             in_.buffering.activations,
                             action);
    }
    return *entry;
  }

  Buffer entry_out(SlotId id, std::size_t m, Action& action) {
    auto& entry = work_[id.index()].entries_out[m];
    if (!entry) {
      entry = graph_.acquire({BufferKind::activations_out, slots_[id.index()].device, 0},
                             in_.buffering.activations,
                             action);
    }
    return *entry;
  }

  void add_activation_up(SlotId id, std::size_t m) {
    auto const& stage = stage_of(id);
    auto& work = work_[id.index()];
    auto activation = make(id, ActionKind::upload_activation, LaneKind::activation_up, m);
    wait_for(activation, upload_window_start(id, m));
    for (auto const& layer : stage.layers) {
      activation.bytes += layer.side_inputs.bytes;
    }
    if (activation.bytes > 0) {
      activation.reads.push_back({{BufferKind::side_input, DeviceId::none(), m}, 0});
    }
    if (stage.range.first > 0 && stage.layers.front().input.bytes > 0) {
      activation.bytes += stage.layers.front().input.bytes;
      read_boundary(activation, BufferKind::checkpoint, stage.range.first - 1);
    }
    if (activation.bytes > 0) {
      activation.writes.push_back(entry_in(id, m, activation));
      work.activation_up[m] = graph_.add(std::move(activation));
    }
    auto const gradient_bytes = stage.layers.back().output_gradient.bytes;
    if (stage.kind == StageKind::backward && gradient_bytes > 0) {
      auto gradient = make(id, ActionKind::upload_gradient, LaneKind::activation_up, m);
      wait_for(gradient, upload_window_start(id, m));
      gradient.bytes = gradient_bytes;
      read_boundary(gradient, BufferKind::boundary_gradient, stage.range.end() - 1);
      gradient.writes.push_back(entry_in(id, m, gradient));
      work.gradient_up[m] = graph_.add(std::move(gradient));
    }
  }

  void read_boundary(Action& action, BufferKind kind, std::size_t boundary) {
    auto const ring = host_ring(kind, boundary, action.micro_batch.index());
    Buffer const buffer{ring, action.round.index()};
    action.reads.push_back(buffer);
    wait_for(action, producers_.at(buffer));
  }

  void write_boundary(Action& action, BufferKind kind, std::size_t boundary) {
    auto const ring = host_ring(kind, boundary, action.micro_batch.index());
    auto const buffer = graph_.acquire(ring, host_ring_entries, action);
    require(buffer.sequence == action.round.index(),
            Errc::unsupported,
            "the schedule runs a stage's rounds out of order");
    action.writes.push_back(buffer);
  }

  void add_compute(SlotId id, std::size_t m) {
    auto const& stage = stage_of(id);
    auto& work = work_[id.index()];
    auto const recomputes = stage.has_backward();
    for (std::size_t i = 0; i < stage.range.count; ++i) {
      auto action =
          make(id, recomputes ? ActionKind::recompute : ActionKind::forward, LaneKind::compute, m);
      auto const& places = stage.layers[i];
      auto const is_loss = stage.has_loss() && i + 1 == stage.range.count;
      if (i == 0) {
        wait_for(action, work.activation_up[m]);
      }
      if (is_loss || places.output.area == Area::activations_out) {
        action.writes.push_back(entry_out(id, m, action));
      }
      add_layer(id, m, i, std::move(action));
    }
    for (std::size_t i = stage.range.count; recomputes && i-- > 0;) {
      auto action = make(id, ActionKind::backward, LaneKind::compute, m);
      auto const& places = stage.layers[i];
      auto const is_loss = stage.has_loss() && i + 1 == stage.range.count;
      if (i + 1 == stage.range.count) {
        wait_for(action, work.gradient_up[m]);
      }
      if (is_loss || places.input_gradient.area == Area::activations_out) {
        action.writes.push_back(entry_out(id, m, action));
      }
      auto const& uses = in_.blocks.layer_uses[stage.range.first + i];
      if (std::any_of(uses.begin(), uses.end(), [&](auto use) { return in_.blocks.trains(use); })) {
        if (!work.gradients) {
          work.gradients = graph_.acquire(
              {BufferKind::gradients, action.lane.device, 0}, in_.buffering.gradients, action);
        }
        action.writes.push_back(*work.gradients);
      }
      auto const added = add_layer(id, m, i, std::move(action));
      if (m + 1 == micro_batches()) {
        work.last_backward[stage.range.first + i] = added;
      }
    }
  }

  /// Completes a compute action of the stage's layer \p i and adds it.
  ActionId add_layer(SlotId id, std::size_t m, std::size_t i, Action action) {
    auto const& stage = stage_of(id);
    auto& work = work_[id.index()];
    auto const& places = stage.layers[i];
    auto const layer = stage.range.first + i;
    action.layer = LayerId(layer);
    action.first = m == 0;
    action.last = m + 1 == micro_batches();
    auto const& uses = in_.blocks.layer_uses[layer];
    action.uses = uses;
    for (auto const use : uses) {
      if (m == 0 && work.uploaded.contains(use)) {
        wait_for(action, work.uploaded.at(use));
      }
    }
    if (!uses.empty() && work.parameters) {
      action.reads.push_back(*work.parameters);
    }
    auto const reads_entry =
        (places.input.area == Area::activations_in && places.input.bytes > 0) ||
        places.side_inputs.bytes > 0 ||
        (action.kind == ActionKind::backward &&
         places.output_gradient.area == Area::activations_in);
    if (reads_entry && work.entries_in[m]) {
      action.reads.push_back(*work.entries_in[m]);
    }
    if (places.input.area == Area::activations_out) {
      action.reads.push_back(work.entries_out[m].value());
    }
    work.last_compute[m] = graph_.add(std::move(action));
    return work.last_compute[m];
  }

  void add_activation_down(SlotId id, std::size_t m) {
    auto const& stage = stage_of(id);
    auto& work = work_[id.index()];
    if (!work.entries_out[m]) {
      return;
    }
    auto action = make(id, ActionKind::download_activation, LaneKind::activation_down, m);
    action.reads.push_back(*work.entries_out[m]);
    action.bytes = stage.out_bytes;
    wait_for(action, work.last_compute[m]);
    for (auto const& kept : stage.kept) {
      write_boundary(action, BufferKind::checkpoint, kept.boundary);
    }
    if (stage.has_backward() && stage.range.first > 0) {
      write_boundary(action, BufferKind::boundary_gradient, stage.range.first - 1);
    }
    if (stage.has_loss()) {
      action.writes.push_back({{BufferKind::loss, DeviceId::none(), m}, 0});
      if (stage.kind == StageKind::evaluate) {
        action.writes.push_back({{BufferKind::results, DeviceId::none(), m}, 0});
      }
    }
    auto const writes = action.writes;
    work.activation_down[m] = graph_.add(std::move(action));
    for (auto const& buffer : writes) {
      producers_[buffer] = work.activation_down[m];
    }
  }

  struct Landing {
    std::optional<Buffer> buffer;
    std::size_t chunks = 0;  // still to be downloaded
    ActionId landed;         // the latest of them
  };

  CallGraphInput const& in_;
  GraphBuilder graph_;
  std::vector<Slot> slots_;
  std::vector<std::vector<StageChunk>> parameter_chunks_;  // by stage
  std::vector<std::vector<StageChunk>>
      ordered_chunks_;  // of slots whose parameters have no windows
  std::vector<std::vector<StageChunk>> gradient_chunks_;  // by stage; none where nothing is trained
  std::vector<SlotWork> work_;
  Producers producers_;
  std::map<std::pair<std::size_t, std::size_t>, Landing> landings_;         // by use, round
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> accumulated_;  // by block, round
  std::map<std::size_t, std::size_t> landings_waiting_;                     // by use
};

}  // namespace detail

/// Builds the graph of one call.
/// \throws Error (unsupported, invalid_argument) as \ref order_slots does.
[[nodiscard]] inline ActionGraph build_call_graph(CallGraphInput const& input) {
  return detail::CallGraphBuilder(input).build();
}

}  // namespace roundpipe
