// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/memory/stage_layout.hpp>

#include <roundpipe/model/kept_saves.hpp>
#include <support/property.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace stage_layout_test {

namespace {

using namespace roundpipe;

/// A model of \p layers layers with tables of all sizes, which need not make sense.
ModelDescription any_model(std::size_t layers) {
  auto const bytes = [] { return *rc::gen::inRange<Bytes>(0, 2000); };
  auto const table = [](std::size_t most) {
    TensorTable result;
    for (auto n = *rc::gen::inRange<std::size_t>(0, most + 1); n > 0; --n) {
      result.add({"t",
                  {*rc::gen::inRange<std::int64_t>(0, 500)},
                  *rc::gen::element(DType::f32, DType::bf16, DType::i32)});
    }
    return result;
  };
  ModelDescription model;
  for (std::size_t i = 0; i < layers; ++i) {
    auto const last = i + 1 == layers;
    LayerFacts facts;
    facts.name = "any";
    facts.input = i == 0 ? TensorTable{} : model.layers[i - 1].boundary;
    facts.boundary = last ? TensorTable{} : table(3);
    if (!last) {
      auto const carried = *rc::gen::inRange<std::size_t>(0, facts.input.size() + 1);
      facts.carries = {carried, *rc::gen::inRange<std::size_t>(0, carried + 1)};
      for (auto t = facts.input.size() - carried; t < facts.input.size(); ++t) {
        facts.boundary.add(facts.input[t]);
      }
    }
    facts.side_inputs = table(2);
    facts.results = last ? table(2) : TensorTable{};
    facts.footprint = {bytes(), bytes()};
    facts.is_loss = last;
    facts.backward_reads_parameters = *rc::gen::arbitrary<bool>();
    for (auto n = *rc::gen::inRange(0, 4); n > 0; --n) {
      ParameterSpec spec;
      spec.tensor = {"p",
                     {*rc::gen::inRange<std::int64_t>(0, 300)},
                     *rc::gen::element(DType::f32, DType::bf16)};
      if (*rc::gen::inRange(0, 4) == 0) {
        spec.tensor = {"shared", {77}, DType::bf16};
        spec.sharing_key = "key";
      }
      facts.parameters.push_back(spec);
    }
    model.layers.push_back(std::move(facts));
  }
  return model;
}

/// Of each layer that saves anything, two levels, and any of them for each of four micro-batches.
WorkingSet any_working_set(ModelDescription const& model) {
  std::vector<std::vector<Bytes>> level_bytes;
  for (auto const& layer : model.layers) {
    auto const saved = layer.footprint.saved_bytes;
    auto const half = saved / 512 * 256;
    level_bytes.push_back({0});
    if (half > 0) {
      level_bytes.back().push_back(half);
    }
    if (saved > 0) {
      level_bytes.back().push_back(saved);
    }
  }
  WorkingSet set(level_bytes, 4);
  for (std::size_t i = 0; i < level_bytes.size(); ++i) {
    for (std::size_t m = 0; m < 4; ++m) {
      set.set_level(i, m, *rc::gen::inRange<std::size_t>(0, level_bytes[i].size()));
    }
  }
  return set;
}

/// A stage of a random model.
struct Case {
  ModelDescription model;
  ParameterBlocks blocks;
  std::vector<bool> kept;  // by boundary
  StageLayout stage;

  [[nodiscard]] LayerFacts const& facts(std::size_t i) const {
    return model.layers[stage.range.first + i];
  }
};

Case any_case() {
  Case result;
  auto const layers = *rc::gen::inRange<std::size_t>(1, 8);
  result.model = any_model(layers);
  result.blocks = form_blocks(result.model);
  auto const first = *rc::gen::inRange<std::size_t>(0, layers);
  LayerRange const range{first, *rc::gen::inRange<std::size_t>(1, layers - first + 1)};
  result.kept =
      *rc::gen::container<std::vector<bool>>(layers, rc::gen::arbitrary<bool>()).as("kept");
  auto const ends = range.end() == layers;
  auto const backward = *rc::gen::arbitrary<bool>();
  auto const kind = backward ? (ends ? StageKind::fused : StageKind::backward)
                             : (ends ? StageKind::evaluate : StageKind::forward);
  auto const set = *rc::gen::arbitrary<bool>() ? any_working_set(result.model) : WorkingSet{};
  result.stage = lay_out_stage(
      result.model,
      result.blocks,
      kind,
      range,
      [&](std::size_t boundary) { return kind == StageKind::forward && result.kept[boundary]; },
      set);
  if (set.checkpoints() == Checkpoints::layers) {
    result.kept.assign(layers, true);
  }
  return result;
}

/// The tensors of \p boundary that lie in the block at \p place.
TensorTable in_block(TensorTable const& boundary, BoundaryPlace const& place) {
  return boundary.first(place.in_block(boundary.size()));
}

/// What lies where. Contents are numbers; nothing has number 0.
class Memory {
 public:
  void write(Place const& place, std::size_t content) {
    std::erase_if(contents_, [&](auto const& old) { return overlap(old.first, place); });
    if (place.bytes > 0) {
      contents_.emplace_back(place, content);
    }
  }
  /// Whether all of \p place holds \p content.
  bool holds(Place const& place, std::size_t content) const {
    return place.bytes == 0 ||
           std::any_of(contents_.begin(), contents_.end(), [&](auto const& there) {
             return there.second == content && there.first == place;
           });
  }

 private:
  static bool overlap(Place const& a, Place const& b) {
    return a.area == b.area && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }
  std::vector<std::pair<Place, std::size_t>> contents_;
};

/// Where the tensors of \p boundary lie, or their gradients: empty for those of integers.
std::vector<Place> places_of(TensorTable const& boundary, BoundaryPlace const& at, bool gradients) {
  std::vector<Place> places;
  Bytes offset = at.offset;
  for (auto const& spec : in_block(boundary, at)) {
    auto const bytes = gradients && !is_floating(spec.dtype) ? 0 : spec.bytes();
    places.push_back({at.area, offset, bytes});
    offset += align_up(bytes);
  }
  places.insert(places.end(), at.apart.begin(), at.apart.end());
  return places;
}

/// Runs the passes of a stage over its places.
class StageRun {
 public:
  explicit StageRun(Case const& c) : c_(c), stage_(c.stage) {}

  void run() {
    for (std::size_t i = 0; i < stage_.range.count; ++i) {
      if (i == 0 || stage_.recomputes_one_by_one()) {
        write(tensors(i, &LayerPlaces::input), stage_.range.first + i, tensor_content);
      }
    }
    if (stage_.kind == StageKind::backward) {
      write(gradients(stage_.range.count - 1, &LayerPlaces::output_gradient),
            stage_.range.end(),
            gradient_content);
    }
    for (auto const& pass : stage_.passes(RoundId(0), 0)) {
      pass.runs_backward() ? run_backward(pass) : run_forward(pass);
    }
    for (auto const& kept : stage_.kept) {
      check(places_of(c_.model.layers[kept.boundary].boundary, kept.place, false),
            kept.boundary + 1,
            tensor_content);
    }
    if (stage_.has_backward() && stage_.range.first > 0) {
      check(gradients(0, &LayerPlaces::input_gradient), stage_.range.first, gradient_content);
    }
  }

 private:
  /// The content of tensor \p t of the boundary in front of a layer.
  using Content = std::size_t (*)(ModelDescription const&, LayerRange, std::size_t, std::size_t);

  static std::size_t number(std::size_t kind, std::size_t boundary, std::size_t t) {
    return 1 + kind + 2 * (100 * boundary + t);
  }
  static std::size_t tensor_content(ModelDescription const& model,
                                    LayerRange range,
                                    std::size_t boundary,
                                    std::size_t t) {
    if (boundary > range.first) {
      auto const& maker = model.layers[boundary - 1];
      auto const from_end = maker.boundary.size() - t;
      if (from_end <= maker.carries.tensors) {
        return tensor_content(model, range, boundary - 1, maker.input.size() - from_end);
      }
    }
    return number(0, boundary, t);
  }
  static std::size_t gradient_content(ModelDescription const& model,
                                      LayerRange range,
                                      std::size_t boundary,
                                      std::size_t t) {
    if (boundary < range.end()) {
      auto const& taker = model.layers[boundary];
      auto const from_end = taker.input.size() - t;
      if (from_end <= taker.carries.gradients) {
        return gradient_content(model, range, boundary + 1, taker.boundary.size() - from_end);
      }
    }
    return number(1, boundary, t);
  }

  std::vector<Place> tensors(std::size_t i, BoundaryPlace LayerPlaces::* which) const {
    auto const& facts = c_.facts(i);
    auto const& table = which == &LayerPlaces::input ? facts.input : facts.boundary;
    return places_of(table, stage_.layers[i].*which, false);
  }
  std::vector<Place> gradients(std::size_t i, BoundaryPlace LayerPlaces::* which) const {
    auto const& facts = c_.facts(i);
    auto const& table = which == &LayerPlaces::input_gradient ? facts.input : facts.boundary;
    return places_of(table, stage_.layers[i].*which, true);
  }
  /// A tensor at a place of \p taken is not written: the layer carries it.
  void write(std::vector<Place> const& places,
             std::size_t boundary,
             Content content,
             std::vector<Place> const& taken = {}) {
    for (std::size_t t = 0; t < places.size(); ++t) {
      if (std::find(taken.begin(), taken.end(), places[t]) == taken.end()) {
        memory_.write(places[t], content(c_.model, stage_.range, boundary, t));
      }
    }
  }
  void check(std::vector<Place> const& places, std::size_t boundary, Content content) const {
    for (std::size_t t = 0; t < places.size(); ++t) {
      RC_ASSERT(memory_.holds(places[t], content(c_.model, stage_.range, boundary, t)));
    }
  }

  void run_forward(Pass const& pass) {
    auto const i = pass.layer - stage_.range.first;
    memory_.write(stage_.layers[i].workspace, 0);
    memory_.write(stage_.layers[i].saved, 0);
    if (!c_.facts(i).is_loss) {
      auto const outputs = tensors(i, &LayerPlaces::output);
      if (pass.hands_on_output()) {
        write(outputs, pass.layer + 1, tensor_content, tensors(i, &LayerPlaces::input));
        check(outputs, pass.layer + 1, tensor_content);
      } else {
        for (auto const& place : outputs) {
          memory_.write(place, 0);
        }
      }
    }
    check(tensors(i, &LayerPlaces::input), pass.layer, tensor_content);
  }
  void run_backward(Pass const& pass) {
    auto const i = pass.layer - stage_.range.first;
    memory_.write(stage_.layers[i].workspace, 0);
    if (pass.layer > 0) {
      auto const handed = gradients(i, &LayerPlaces::input_gradient);
      write(
          handed,
          pass.layer,
          gradient_content,
          c_.facts(i).is_loss ? std::vector<Place>{} : gradients(i, &LayerPlaces::output_gradient));
      check(handed, pass.layer, gradient_content);
    }
    check(tensors(i, &LayerPlaces::input), pass.layer, tensor_content);
    if (!c_.facts(i).is_loss) {
      check(gradients(i, &LayerPlaces::output_gradient), pass.layer + 1, gradient_content);
    }
  }

  Case const& c_;
  StageLayout const& stage_;
  Memory memory_;
};

bool apart(Place const& a, Place const& b) {
  return a.area != b.area || a.bytes == 0 || b.bytes == 0 ||
         a.offset + align_up(a.bytes) <= b.offset || b.offset + align_up(b.bytes) <= a.offset;
}
void assert_all_apart(std::vector<Place> const& places) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    for (std::size_t j = i + 1; j < places.size(); ++j) {
      RC_ASSERT(apart(places[i], places[j]));
    }
  }
}
bool same(Place const& a, Place const& b) {
  return a.area == b.area && a.offset == b.offset;
}

}  // namespace

TEST_CASE("places are large enough, aligned, and inside their areas") {
  test::check_property([] {
    auto const c = any_case();
    auto const& stage = c.stage;
    auto const inside = [&](Place const& place, Bytes bytes) {
      std::array<Bytes, 4> const sizes{0, stage.in_bytes, stage.out_bytes, stage.scratch_bytes};
      RC_ASSERT(place.bytes == bytes || place.area == Area::scratch || place.area == Area::none);
      RC_ASSERT(place.bytes >= bytes);
      RC_ASSERT(place.offset % tensor_alignment_bytes == 0U);
      RC_ASSERT(place.offset + place.bytes <= sizes[static_cast<std::size_t>(place.area)]);
    };
    for (std::size_t i = 0; i < stage.range.count; ++i) {
      auto const& places = stage.layers[i];
      auto const& facts = c.facts(i);
      inside(places.side_inputs, facts.side_inputs.bytes());
      inside(places.workspace, facts.footprint.workspace_bytes);
      inside(places.input, in_block(facts.input, places.input).bytes());
      inside(places.output, in_block(facts.boundary, places.output).bytes());
      for (auto const* const boundary :
           {&places.input, &places.output, &places.input_gradient, &places.output_gradient}) {
        for (auto const& place : boundary->apart) {
          inside(place, place.bytes);
        }
      }
      auto const layer = stage.range.first + i;
      auto const& set = stage.working_set;
      RC_ASSERT(stage.save_bytes >= set.most_bytes(layer));
      for (std::size_t m = 0; m < set.micro_batches_per_round(); ++m) {
        auto const has_rest = stage.kind == StageKind::forward    ? set.level(layer, m) > 0
                              : stage.kind == StageKind::backward ? set.recomputes(layer, m)
                                                                  : stage.has_backward();
        RC_ASSERT(places.saved.bytes >=
                  (has_rest ? facts.footprint.saved_bytes - set.bytes(layer, m) : 0));
      }
      inside(places.saved, 0);
      if (stage.has_backward()) {
        inside(places.output_gradient,
               gradient_table(in_block(facts.boundary, places.output_gradient)).bytes());
        if (stage.range.first + i > 0) {
          inside(places.input_gradient,
                 gradient_table(in_block(facts.input, places.input_gradient)).bytes());
        }
      }
    }
    if (stage.has_loss()) {
      inside(stage.loss, sizeof(double));
    }
    RC_ASSERT(stage.has_loss() == (stage.range.end() == c.model.size()));
  });
}

TEST_CASE("boundaries inside a stage have one place, boundaries between stages lie in entries") {
  test::check_property([] {
    auto const c = any_case();
    auto const& stage = c.stage;
    auto const count = stage.range.count;
    for (std::size_t i = 1; i < count; ++i) {
      if (stage.recomputes_one_by_one()) {
        RC_ASSERT(stage.layers[i].input.area == Area::activations_in);
      } else {
        RC_ASSERT(same(stage.layers[i].input, stage.layers[i - 1].output));
      }
      if (stage.has_backward()) {
        RC_ASSERT(same(stage.layers[i].input_gradient, stage.layers[i - 1].output_gradient));
      }
    }
    auto const& first = stage.layers.front();
    auto const& last = stage.layers.back();
    RC_ASSERT(first.input.area == Area::activations_in);
    for (auto const& places : stage.layers) {
      RC_ASSERT(places.side_inputs.area == Area::activations_in);
    }
    if (stage.has_backward()) {
      RC_ASSERT(first.input_gradient.area ==
                (stage.range.first > 0 ? Area::activations_out : Area::none));
    }
    if (stage.kind == StageKind::backward) {
      RC_ASSERT(last.output_gradient.area == Area::activations_in);
    }
    // A forward stage hands over its last boundary and those at which backward stages begin.
    std::vector<std::size_t> kept;
    for (std::size_t i = 0; stage.kind == StageKind::forward && i < count; ++i) {
      if (i + 1 == count || c.kept[stage.range.first + i]) {
        kept.push_back(stage.range.first + i);
        RC_ASSERT(stage.layers[i].output.area == Area::activations_out);
      }
    }
    RC_ASSERT(stage.kept.size() == kept.size());
    for (std::size_t k = 0; k < kept.size(); ++k) {
      RC_ASSERT(stage.kept[k].boundary == kept[k]);
      RC_ASSERT(same(stage.kept[k].place, stage.layers[kept[k] - stage.range.first].output));
    }
  });
}

TEST_CASE("nothing is overwritten while it is needed") {
  test::check_property([] {
    auto const c = any_case();
    auto const& stage = c.stage;
    auto const count = stage.range.count;
    // Memory that lives as long as the micro-batch is on the device.
    std::vector<Place> whole{stage.layers.front().input, stage.loss, stage.results};
    Place shared;  // what one layer after the other saves
    for (auto const& places : stage.layers) {
      whole.push_back(places.side_inputs);
      if (stage.recomputes_one_by_one()) {
        whole.push_back(places.input);
        shared = places.saved.bytes > shared.bytes ? places.saved : shared;
      } else if (stage.has_backward()) {
        whole.push_back(places.saved);
        if (stage.kind == StageKind::fused || &places != &stage.layers.back()) {
          whole.push_back(places.output);
        }
      }
      if (stage.kind == StageKind::forward) {
        shared = places.saved.bytes > shared.bytes ? places.saved : shared;
      }
    }
    whole.push_back(shared);
    if (stage.recomputes_one_by_one()) {
      whole.erase(whole.begin());  // the first layer's input stands there twice
    }
    if (stage.has_backward()) {
      whole.push_back(stage.layers.front().input_gradient);
      if (stage.kind == StageKind::backward) {
        whole.push_back(stage.layers.back().output_gradient);
      }
    }
    for (auto const& kept : stage.kept) {
      whole.push_back(kept.place);
    }
    assert_all_apart(whole);
    // Memory that lives while one layer runs.
    for (std::size_t i = 0; i < count; ++i) {
      auto const& places = stage.layers[i];
      auto const contains = [&](Place const& place) {
        return std::any_of(
            whole.begin(), whole.end(), [&](Place const& p) { return same(p, place); });
      };
      std::vector<Place> forward{places.workspace};
      std::vector<Place> backward{places.workspace};
      for (auto const& place : {places.input, places.output}) {
        if (!contains(place)) {
          forward.push_back(place);
        }
      }
      for (auto const& place : {places.input_gradient, places.output_gradient}) {
        if (!contains(place)) {
          backward.push_back(place);
        }
      }
      for (auto* const now : {&forward, &backward}) {
        assert_all_apart(*now);
        for (auto const& place : *now) {
          for (auto const& other : whole) {
            RC_ASSERT(apart(place, other));
          }
        }
      }
    }
  });
}

TEST_CASE("each pass finds the tensors and the gradients that the passes before it have made") {
  auto params = rc::detail::configuration().testParams;
  params.maxSuccess = 3000;  // few stages carry two tensors past the same layers
  test::check_property(
      [] {
        auto const c = any_case();
        StageRun(c).run();
      },
      params);
}

TEST_CASE("where every boundary is a checkpoint, saved activations have room for one layer") {
  auto const model = describe(test::toy_model({.dense = 6}), {8, 8});
  auto const blocks = form_blocks(model);
  auto const none = [](std::size_t) { return false; };
  auto const with = [&](WorkingSet const& set) {
    return lay_out_stage(model, blocks, StageKind::backward, {1, 3}, none, set);
  };
  auto const boundary = align_up(model.layers[1].boundary.bytes());
  auto const saved = align_up(model.layers[1].footprint.saved_bytes);
  auto const stages = with(WorkingSet{});
  auto const recomputes = with(spread_saves(model, 0, 4));
  CHECK(recomputes.save_bytes == 0);
  CHECK(recomputes.in_bytes == stages.in_bytes + 2 * boundary);
  CHECK(recomputes.scratch_bytes == stages.scratch_bytes - 2 * boundary - 2 * saved);
  auto const some = with(spread_saves(model, 1, 4));
  CHECK(some.save_bytes == saved);
  CHECK(some.scratch_bytes == recomputes.scratch_bytes);
  std::vector<std::size_t> const half(4, 1);
  auto const part = with(keep_levels(model, {{}, half, half, half}, 4));
  CHECK(part.save_bytes == saved / 2);
  CHECK(part.scratch_bytes == recomputes.scratch_bytes - saved / 2);
  auto const all = with(spread_saves(model, 4, 4));
  CHECK(all.scratch_bytes == recomputes.scratch_bytes - saved);
  CHECK(all.layers[0].saved.bytes == 0);
  auto const count_passes = [](StageLayout const& stage) {
    std::size_t count = 0;
    for (std::size_t m = 0; m < 4; ++m) {
      count += stage.passes(RoundId(0), m).size();
    }
    return count;
  };
  CHECK(count_passes(recomputes) == 4 * 6);
  CHECK(count_passes(some) == 4 * 6 - 3);
  CHECK(count_passes(part) == 4 * 6);
  CHECK(count_passes(all) == 4 * 3);
}

TEST_CASE("the parameter entry holds each block once, the gradient entry each use of it") {
  test::check_property([] {
    auto const c = any_case();
    auto const& stage = c.stage;
    std::vector<BlockUseId> expected;
    for (auto layer = stage.range.first; layer < stage.range.end(); ++layer) {
      auto const& uses = c.blocks.layer_uses[layer];
      expected.insert(expected.end(), uses.begin(), uses.end());
    }
    RC_ASSERT(stage.uses.size() == expected.size());
    Bytes parameters = 0;
    Bytes gradients = 0;
    for (std::size_t u = 0; u < expected.size(); ++u) {
      auto const& place = stage.uses[u];
      auto const& block = c.blocks.block_of(expected[u]);
      RC_ASSERT(place.use == expected[u]);
      RC_ASSERT(&stage.place_of(place.use) == &place);
      RC_ASSERT(place.backward_reads ==
                c.model.layers[c.blocks.use(place.use).layer.index()].backward_reads_parameters);
      auto const found = std::ranges::find_if(expected, [&](auto use) {
        auto const layer = c.blocks.use(use).layer.index();
        auto const is_read =
            c.model.layers[layer].backward_reads_parameters || stage.runs_forward(layer);
        return is_read && c.blocks.use(use).block == c.blocks.use(place.use).block;
      });
      // A use before that is read by nobody.
      auto const holder =
          found == expected.end() || place.use < *found ? BlockUseId::none() : *found;
      RC_ASSERT(place.holder == holder);
      RC_ASSERT(place.holds() == (holder == place.use));
      if (place.holds()) {
        RC_ASSERT(place.parameters == parameters);
        parameters += block.master.bytes();
      } else if (holder.valid()) {
        RC_ASSERT(place.parameters == stage.place_of(holder).parameters);
      }
      if (stage.has_backward()) {
        RC_ASSERT(place.gradients == gradients);
        gradients += block.gradient.bytes();
      }
    }
    RC_ASSERT(stage.parameter_bytes == parameters);
    if (!stage.has_backward()) {
      RC_ASSERT(stage.gradient_bytes == 0U);
    }
  });
}

TEST_CASE("rounded gradients overwrite no sum before it is rounded, and nothing that comes down") {
  test::check_property([] {
    auto const c = any_case();
    auto const& stage = c.stage;
    if (!stage.has_backward()) {
      return;
    }
    using Extent = std::pair<Bytes, Bytes>;  // begin, end
    std::vector<Extent> live;
    auto const sum_of = [&](UsePlace const& place) {
      return Extent{place.gradients,
                    place.gradients + c.blocks.block_of(place.use).gradient.bytes()};
    };
    Bytes sums = 0;
    Bytes rounded = 0;
    for (auto const& place : stage.uses) {
      live.push_back(sum_of(place));
      sums += live.back().second - live.back().first;
      rounded += c.blocks.block_of(place.use).rounded.bytes();
    }
    for (auto layer = stage.range.end(); layer-- > stage.range.first;) {
      for (auto const use : c.blocks.layer_uses[layer]) {
        auto const& place = *std::ranges::find(stage.uses, use, &UsePlace::use);
        auto const& block = c.blocks.block_of(use);
        Extent const here{place.rounded, place.rounded + block.rounded.bytes()};
        RC_ASSERT(here.first % tensor_alignment_bytes == 0U);
        RC_ASSERT(here.second <= stage.gradient_bytes);
        for (auto const& other : live) {
          RC_ASSERT(here.second <= other.first || other.second <= here.first ||
                    here.first == here.second);
        }
        live.push_back(here);
        if (block.rounded.size() == block.master.size()) {
          live.erase(std::ranges::find(live, sum_of(place)));
        }
      }
    }
    RC_ASSERT(stage.gradient_bytes >= sums);
    RC_ASSERT(stage.gradient_bytes <= sums + rounded);
  });
}

TEST_CASE("only the last layer's rounded gradients need memory of their own, whichever are large") {
  auto const gradient_bytes = [](std::vector<std::int64_t> const& sizes) {
    ModelDescription model{{1, 1}, {}};
    for (auto const size : sizes) {
      LayerFacts facts;
      facts.parameters.push_back({{"weight", {size}, DType::bf16}});
      facts.is_loss = model.size() + 1 == sizes.size();
      model.layers.push_back(facts);
    }
    auto const blocks = form_blocks(model);
    auto const none = [](std::size_t) { return false; };
    return lay_out_stage(model, blocks, StageKind::fused, {0, sizes.size()}, none).gradient_bytes;
  };
  CHECK(gradient_bytes({1024, 1024, 1024, 1024}) == 4 * 4096 + 2048);
  CHECK(gradient_bytes({2560, 1024, 1024, 1024}) == (2560 + 3 * 1024) * 4 + 2048);
  CHECK(gradient_bytes({1024, 1024, 1024, 2560}) == (2560 + 3 * 1024) * 4 + 5120);
}

TEST_CASE(
    "a backward stage saves all its layers, a forward stage alternates between two boundaries") {
  auto const model = describe(test::toy_model({.dense = 6}), {8, 8});
  auto const blocks = form_blocks(model);
  auto const none = [](std::size_t) { return false; };
  auto const scratch = [&](StageKind kind, std::size_t layers) {
    return lay_out_stage(model, blocks, kind, {1, layers}, none).scratch_bytes;
  };
  auto const hidden = model.layers[1].boundary.bytes();
  auto const saved = model.layers[1].footprint.saved_bytes;
  CHECK(scratch(StageKind::forward, 5) == scratch(StageKind::forward, 3));
  CHECK(scratch(StageKind::backward, 5) == scratch(StageKind::backward, 3) + 2 * (hidden + saved));
}

TEST_CASE("the last stage of an evaluation produces results and loss, but no gradient") {
  auto const model = describe(test::toy_model({.dense = 2}), {2, 3});
  auto const blocks = form_blocks(model);
  auto const stage =
      lay_out_stage(model, blocks, StageKind::evaluate, {2, 2}, [](std::size_t) { return false; });
  CHECK(stage.has_loss());
  CHECK_FALSE(stage.has_backward());
  CHECK(stage.results.bytes == model.layers.back().results.bytes());
  CHECK(stage.results.area == Area::activations_out);
  CHECK(stage.loss.area == Area::activations_out);
  CHECK(stage.gradient_bytes == 0);
  auto const fused =
      lay_out_stage(model, blocks, StageKind::fused, {2, 2}, [](std::size_t) { return false; });
  CHECK(fused.has_loss());
  CHECK(fused.has_backward());
  CHECK(fused.results.bytes == 0);
}

}  // namespace stage_layout_test
