// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/memory/boundary_place.hpp>
#include <roundpipe/memory/freed_space.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <roundpipe/model/stage_passes.hpp>
#include <roundpipe/model/working_set.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>

namespace roundpipe {

namespace detail {

/// Hands out places in one area, one after another.
class AreaCursor {
 public:
  explicit AreaCursor(Area area) noexcept : area_(area) {}
  Place take(Bytes bytes) noexcept {
    Place const place{area_, used_, bytes};
    used_ += align_up(bytes);
    return place;
  }
  [[nodiscard]] Bytes used() const noexcept { return used_; }

 private:
  Area area_;
  Bytes used_ = 0;
};

/// Places the rounded gradients where sums have been that are rounded before, in the order in which
/// the last micro-batch runs backward.
ROUNDPIPE_INLINE void place_rounded(StageLayout& layout, ParameterBlocks const& blocks) {
  FreedSpace space(layout.gradient_bytes);
  for (auto layer = layout.range.end(); layer-- > layout.range.first;) {
    for (auto& place : layout.uses) {  // of a layer: in the order in which they are rounded
      if (blocks.use(place.use).layer != LayerId(layer) || !place.trains) {
        continue;
      }
      auto const& block = blocks.block_of(place.use);
      place.rounded = space.take(block.rounded.bytes());
      if (block.rounded.size() == block.gradient.size()) {
        space.free(place.gradients, block.gradient.bytes());
      }
    }
  }
  layout.gradient_bytes = space.end();
}

ROUNDPIPE_INLINE void place_uses(StageLayout& layout,
                                 ModelDescription const& model,
                                 ParameterBlocks const& blocks,
                                 ResidentBlocks const& resident) {
  for (std::size_t layer = layout.range.first; layer < layout.range.end(); ++layer) {
    for (auto const use : blocks.layer_uses[layer]) {
      auto const& block = blocks.block_of(use);
      UsePlace place;
      place.use = use;
      place.trains = blocks.trains(use);
      place.stays = resident.contains(blocks.use(use).block);
      place.backward_reads = model.layers[layer].backward_reads_parameters;
      auto const same =
          std::find_if(layout.uses.begin(), layout.uses.end(), [&](UsePlace const& other) {
            return other.holds() && blocks.use(other.use).block == blocks.use(use).block;
          });
      if (same != layout.uses.end()) {
        place.holder = same->use;
        place.parameters = same->parameters;
      } else if (place.backward_reads || layout.runs_forward(layer)) {
        place.holder = use;
        place.parameters = place.stays ? 0 : layout.parameter_bytes;
        layout.parameter_bytes += place.stays ? 0 : block.master.bytes();
      }
      if (layout.has_backward() && place.trains) {
        place.gradients = layout.gradient_bytes;
        layout.gradient_bytes += block.gradient.bytes();
      }
      layout.uses.push_back(place);
    }
  }
  if (layout.has_backward()) {
    place_rounded(layout, blocks);
  }
}

/// What the working set leaves of a layer's saves: the room for it on the device.
struct SaveRest {
  Bytes kept_bytes = 0;  ///< The most that the host keeps of a micro-batch.
  Bytes rest_bytes = 0;  ///< The most that it does not, where the stage has any of it.
};

/// Of a layer that saves \p saved_bytes. A forward stage saves nothing of level 0, a backward stage
/// all that it recomputes.
[[nodiscard]] ROUNDPIPE_INLINE SaveRest save_rest(WorkingSet const& working_set,
                                                  std::size_t layer,
                                                  bool is_forward,
                                                  Bytes saved_bytes) {
  SaveRest result;
  working_set.for_each_set([&](WorkingSet const& set) {
    set.for_each_level(layer, [&](std::size_t level) {
      auto const kept = set.bytes_of(layer, level);
      result.kept_bytes = std::max(result.kept_bytes, kept);
      auto const has_rest = is_forward ? level > 0 : set.recomputes_from(layer, level);
      result.rest_bytes = std::max(result.rest_bytes, has_rest ? saved_bytes - kept : 0);
    });
  });
  return result;
}

}  // namespace detail

ROUNDPIPE_INLINE UsePlace const& StageLayout::place_of(BlockUseId use) const {
  return *std::find_if(
      uses.begin(), uses.end(), [&](UsePlace const& place) { return place.use == use; });
}

ROUNDPIPE_INLINE bool StageLayout::runs_forward(std::size_t layer) const {
  if (!recomputes_one_by_one()) {
    return true;
  }
  bool recomputes = false;
  working_set.for_each_set([&](WorkingSet const& set) {
    set.for_each_level(layer, [&](std::size_t level) {
      recomputes = recomputes || set.recomputes_from(layer, level);
    });
  });
  return recomputes;
}

ROUNDPIPE_INLINE std::size_t StageLayout::last_reader(BlockUseId holder,
                                                      ParameterBlocks const& blocks) const {
  for (auto const& place : uses) {
    if (place.holder == holder && place.backward_reads) {
      return blocks.use(place.use).layer.index();
    }
  }
  return range.end();
}

ROUNDPIPE_INLINE StageLayout lay_out_stage(ModelDescription const& model,
                                           ParameterBlocks const& blocks,
                                           StageKind kind,
                                           LayerRange range,
                                           std::function<bool(std::size_t)> const& is_checkpoint,
                                           WorkingSet const& working_set,
                                           ResidentBlocks const& resident) {
  StageLayout layout;
  layout.kind = kind;
  layout.range = range;
  layout.layers.resize(range.count);
  if (kind == StageKind::forward || kind == StageKind::backward) {
    layout.working_set = working_set;
  }
  detail::place_uses(layout, model, blocks, resident);
  auto const ends_with = layout.has_backward() ? range.first : range.end() - 1;
  layout.reads_to_the_end = std::ranges::any_of(layout.uses, [&](UsePlace const& place) {
    return blocks.use(place.use).layer == LayerId(ends_with) && !place.stays &&
           (place.backward_reads || !layout.has_backward());
  });
  detail::AreaCursor in(Area::activations_in);
  detail::AreaCursor out(Area::activations_out);
  detail::AreaCursor scratch(Area::scratch);
  auto const& layers = model.layers;
  auto const last = range.end() - 1;
  auto const every_checkpoint = layout.working_set.checkpoints() == Checkpoints::layers;
  auto const one_by_one = layout.recomputes_one_by_one();
  auto const saves_one_layer = one_by_one || kind == StageKind::forward;  // at a time
  auto places = [&](std::size_t layer) -> LayerPlaces& {
    return layout.layers[layer - range.first];
  };
  auto const rest_of = [&](std::size_t layer) {
    return detail::save_rest(
        layout.working_set, layer, kind == StageKind::forward, layers[layer].footprint.saved_bytes);
  };

  using detail::BoundaryData;
  auto const hands_on = [&](std::size_t i) {
    return i == last || every_checkpoint || is_checkpoint(i);
  };
  auto const tensors_apart = [&](std::size_t i) { return detail::tensors_apart(model, i); };
  auto const gradients_apart = [&](std::size_t i) {
    return detail::gradients_apart(model, range, i);
  };
  // The most that a place for what passes between layers holds of the boundary behind layer i.
  auto const alternating_bytes = [&](std::size_t i) {
    auto const& boundary = layers[i].boundary;
    if (runs_backward(kind) && (i == last || one_by_one)) {
      return boundary.bytes();
    }
    auto const apart = runs_backward(kind) ? gradients_apart(i)
                       : hands_on(i)       ? layers[i].carries.tensors
                                           : tensors_apart(i);
    return boundary.first(boundary.size() - apart).bytes();
  };

  Bytes inner_bytes = 0;  // the largest of what passes between layers inside the stage
  Bytes workspace_bytes = 0;
  Bytes rest_bytes = 0;  // of saves of one layer at a time
  for (std::size_t i = range.first; i <= last; ++i) {
    workspace_bytes = std::max(workspace_bytes, layers[i].footprint.workspace_bytes);
    inner_bytes = std::max(inner_bytes, alternating_bytes(i));
    auto const rest = rest_of(i);
    layout.save_bytes = std::max(layout.save_bytes, align_up(rest.kept_bytes));
    rest_bytes = std::max(rest_bytes, saves_one_layer ? rest.rest_bytes : 0);
  }
  auto const workspace = scratch.take(workspace_bytes);
  Place const alternating[] = {scratch.take(inner_bytes), scratch.take(inner_bytes)};
  auto const rest = scratch.take(rest_bytes);

  detail::CarriedSpace carried;  // behind all else in scratch
  auto const place_forward = [&](Pass const& pass) {
    auto const i = pass.layer;
    auto& here = places(i);
    auto const& facts = layers[i];
    if (i > range.first && !one_by_one) {
      here.input = places(i - 1).output;
    } else {
      here.input = in.take(facts.input.bytes());
    }
    here.side_inputs = in.take(facts.side_inputs.bytes());
    here.workspace = workspace;
    if (facts.is_loss) {
      layout.loss = out.take(sizeof(double));
      if (kind == StageKind::evaluate) {
        layout.results = out.take(facts.results.bytes());
      }
    } else if (pass.saves.has(PassData::output) && !one_by_one) {
      auto const own = facts.boundary.size() - tensors_apart(i);
      here.output = scratch.take(facts.boundary.first(own).bytes());
      here.output.apart = detail::carried_places({here.input, facts.carries.tensors},
                                                 facts.boundary,
                                                 tensors_apart(i),
                                                 BoundaryData::tensors,
                                                 [&](Bytes bytes) { return scratch.take(bytes); });
    } else if (pass.writes.has(PassData::output) && hands_on(i)) {
      here.output = out.take(facts.boundary.bytes());
      layout.kept.push_back({i, here.output});
      carried.leave(here.input, here.output);
    } else {
      here.output = alternating[i % 2];
      if (!layout.has_backward()) {
        carried.place({here.input, facts.carries.tensors},
                      here.output,
                      facts.boundary,
                      tensors_apart(i),
                      BoundaryData::tensors,
                      scratch.used());
      }
    }
    if (saves_one_layer) {
      here.saved = rest;
      here.saved.bytes = rest_of(i).rest_bytes;
    } else if (pass.saves.has(PassData::activations)) {
      here.saved = scratch.take(facts.footprint.saved_bytes);
    }
  };
  auto const place_backward = [&](Pass const& pass) {
    auto const i = pass.layer;
    if (i == last && !writes(layer_passes(kind), PassData::output)) {
      places(i).output_gradient = in.take(gradient_table(layers[i].boundary).bytes());
    }
    if (i > range.first) {
      places(i).input_gradient = alternating[i % 2];
      carried.place({places(i).output_gradient, layers[i].carries.gradients},
                    places(i).input_gradient,
                    layers[i].input,
                    gradients_apart(i - 1),
                    BoundaryData::gradients,
                    scratch.used());
      places(i - 1).output_gradient = places(i).input_gradient;
    } else if (i > 0) {
      places(i).input_gradient = out.take(gradient_table(layers[i].input).bytes());
    }
  };
  for (auto const& pass : Stage{kind, range}.passes()) {  // as if the host kept nothing
    pass.runs_backward() ? place_backward(pass) : place_forward(pass);
  }
  layout.in_bytes = in.used();
  layout.out_bytes = out.used();
  layout.scratch_bytes = std::max(scratch.used(), carried.end());
  return layout;
}

}  // namespace roundpipe
