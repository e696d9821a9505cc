// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief When the actions of a slot ran, by what they do.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/graph/held_bytes.hpp>
#include <roundpipe/graph/timeline.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe::detail {

/// When a layer's actions for a micro-batch run.
struct LayerTimes {
  Lifetime forward;  ///< Or recomputation.
  Lifetime backward;
  Lifetime save_copy;
  Lifetime sent;  ///< To other devices.
  bool hands_on_output = false;
  /// The kinds of boundaries, kept by the device, that the layer reads (false) or writes (true).
  std::set<std::pair<BufferKind, bool>> resident;

  [[nodiscard]] Lifetime passes() const { return {forward, backward}; }
};

/// When the actions of a slot run.
struct SlotTimes {
  struct MicroBatch {
    Lifetime input_up;
    Lifetime gradient_up;
    Lifetime down;
    std::vector<LayerTimes> layers;  // of the stage
  };
  struct Chunk {
    Lifetime copy;
    std::span<BlockPiece const> pieces;
  };

  DeviceId device;
  StageId stage;
  RoundId round;
  std::map<MicroBatchId, MicroBatch> micro_batches;
  std::vector<Chunk> uploads;
  std::vector<Chunk> downloads;

  void add(TimelineEntry const& entry, Action const& action, StageLayout const& layout) {
    device = entry.lane.device;
    stage = action.stage;
    round = action.round;
    Lifetime const time(entry);
    if (action.kind == ActionKind::upload_parameters) {
      uploads.push_back({time, action.pieces});
      return;
    }
    if (action.kind == ActionKind::download_gradients) {
      downloads.push_back({time, action.pieces});
      return;
    }
    auto& micro_batch = micro_batches[action.micro_batch];
    micro_batch.layers.resize(layout.range.count);
    auto const layer = [&]() -> LayerTimes& {
      return micro_batch.layers.at(action.layer.index() - layout.range.first);
    };
    switch (action.kind) {
      case ActionKind::upload_activation:
        micro_batch.input_up.add(time);
        break;
      case ActionKind::upload_gradient:
        micro_batch.gradient_up.add(time);
        break;
      case ActionKind::download_activation:
        micro_batch.down.add(time);
        break;
      case ActionKind::send_boundary:
        layer().sent.add(time);
        return;
      case ActionKind::upload_save:
      case ActionKind::download_save:
        layer().save_copy.add(time);
        break;
      case ActionKind::forward:
      case ActionKind::recompute:
        layer().forward.add(time);
        layer().hands_on_output = action.hands_on_output;
        break;
      default:
        layer().backward.add(time);
    }
    for (bool const writes : {false, true}) {
      for (auto const& buffer : writes ? action.writes : action.reads) {
        if (is_resident(buffer)) {
          layer().resident.emplace(buffer.ring.kind, writes);
        }
      }
    }
  }
};

/// What \p action, of \p stage, writes of the resident \p buffer.
[[nodiscard]] inline Bytes resident_bytes(Action const& action,
                                          Buffer const& buffer,
                                          StageLayout const& stage,
                                          ParameterBlocks const& blocks) {
  Bytes bytes = 0;
  if (auto const block = resident_block(buffer.ring); block.valid()) {
    for (auto const& piece : action.pieces) {
      bytes += blocks.use(piece.use).block == block ? piece.bytes : 0;
    }
    return bytes;
  }
  auto const& places = stage.layers[action.layer.index() - stage.range.first];
  return buffer.ring.kind == BufferKind::checkpoint ? places.output.bytes
                                                    : places.input_gradient.bytes;
}

}  // namespace roundpipe::detail
