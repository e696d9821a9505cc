// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where an action of a device finds its bytes, on the device and on the host.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/graph/action_graph.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/shape_cache.hpp>
#include <roundpipe/runtime/execute/call_data.hpp>
#include <roundpipe/runtime/execute/run_state.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace roundpipe {

/// An action of a run, on the device that plays its part.
struct DeviceAction {
  RunState const& run;
  Action const& action;
  DeviceId device;

  [[nodiscard]] CallData const& call() const { return run.call(); }
  [[nodiscard]] StageLayout const& stage() const { return call().stages[action.stage.index()]; }
  [[nodiscard]] std::size_t micro_batch() const {
    return action.round.index() * call().micro_batches_per_round + action.micro_batch.index();
  }
  [[nodiscard]] ShapedModel const& shaped() const { return *call().shapes[micro_batch()]; }
  [[nodiscard]] LayerFacts const& facts(std::size_t layer) const {
    return shaped().model.layers[layer];
  }
  /// Where the action's layer finds its tensors.
  [[nodiscard]] LayerPlaces const& places() const {
    return stage().layers[action.layer.index() - stage().range.first];
  }
  /// What the host keeps of the layer's saves. Of small extents there may be nothing.
  [[nodiscard]] Bytes kept_bytes() const {
    auto const& levels = facts(action.layer.index()).save_levels;
    return levels[std::min(action.save_level, levels.size() - 1)];
  }
  /// Where use \p use of a block lies in the stage's entries.
  [[nodiscard]] UsePlace const& place_of(BlockUseId use) const;
};

/// The arenas of all devices, cut as planned.
class DevicePlaces {
 public:
  /// \p arenas, by device, are as large as \p plan, which must outlive this.
  DevicePlaces(DeviceMemoryPlan const& plan, std::vector<DeviceBytes> arenas)
      : plan_(plan), arenas_(std::move(arenas)) {}

  [[nodiscard]] std::vector<DeviceBytes> const& arenas() const noexcept { return arenas_; }

  /// The entry of a device's ring that the action uses; empty when it uses none.
  [[nodiscard]] DeviceBytes entry(DeviceAction const& here, BufferKind kind) const;

  /// Where the action has the parameters of \p block, or of the stage that it serves among others;
  /// empty when it touches none.
  [[nodiscard]] DeviceBytes parameters(DeviceAction const& here, BlockId block) const;

  /// The bytes of \p place for the action; empty where \p place is.
  [[nodiscard]] DeviceBytes at(DeviceAction const& here, Place const& place) const;

  /// The entry of the boundary of \p kind that a device keeps among \p buffers, which the action
  /// reads or writes, on that device; empty when there is none.
  [[nodiscard]] DeviceBytes resident(DeviceAction const& here,
                                     std::vector<Buffer> const& buffers,
                                     BufferKind kind) const;

 private:
  [[nodiscard]] DeviceBytes arena(DeviceAction const& here) const {
    return arenas_[here.device.index()];
  }
  [[nodiscard]] DeviceBytes entry(DeviceAction const& here, Buffer const& buffer) const;
  [[nodiscard]] DeviceBytes area(DeviceAction const& here, Area area) const;

  DeviceMemoryPlan const& plan_;
  std::vector<DeviceBytes> arenas_;  // by device
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/runtime/actions/impl/device_places.ipp>
#endif
