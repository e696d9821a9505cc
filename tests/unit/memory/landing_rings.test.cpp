// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/memory/landing_rings.hpp>

#include <roundpipe/core/id.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace landing_rings_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// Seven layers and the loss; backward stages of two layers.
struct Planned {
  explicit Planned(bool tied = false)
      : model(describe(toy_model({.dense = 6, .tied = tied}), {2, 3})),
        blocks(form_blocks(model, true)) {
    auto const add = [&](StageKind kind, LayerRange range) {
      stages.push_back(
          lay_out_stage(model, blocks, kind, range, [](std::size_t) { return false; }, {}));
    };
    add(StageKind::forward, {0, 6});
    add(StageKind::fused, {6, 2});
    for (std::size_t first = 6; first > 0; first -= 2) {
      add(StageKind::backward, {first - 2, 2});
    }
  }

  /// The rings of each backward stage in \p round.
  [[nodiscard]] std::vector<std::vector<std::size_t>> rings(LandingRings const& landings,
                                                            std::size_t round = 0) const {
    std::vector<std::vector<std::size_t>> result;
    for (auto const& stage : stages) {
      if (stage.has_backward()) {
        auto& of_stage = result.emplace_back();
        for (auto const& place : stage.uses) {
          of_stage.push_back(landings.index(place.use, RoundId(round)));
        }
      }
    }
    return result;
  }

  ModelDescription model;
  ParameterBlocks blocks;
  std::vector<StageLayout> stages;
};

bool are_disjoint(std::vector<std::size_t> const& a, std::vector<std::size_t> const& b) {
  return std::none_of(a.begin(), a.end(), [&](std::size_t ring) {
    return std::find(b.begin(), b.end(), ring) != b.end();
  });
}

}  // namespace

TEST_CASE("a stage's gradients land apart, and stages of one device take turns") {
  Planned const plan;
  for (std::size_t devices = 1; devices <= 5; ++devices) {
    CAPTURE(devices);
    LandingRings const landings(plan.blocks, plan.stages, devices, 1);
    auto const rings = plan.rings(landings);
    REQUIRE(rings.size() == 4);
    for (std::size_t a = 0; a < rings.size(); ++a) {
      auto sorted = rings[a];
      std::sort(sorted.begin(), sorted.end());
      CHECK(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end());
      for (std::size_t b = 0; b < a; ++b) {
        CHECK(are_disjoint(rings[a], rings[b]) == ((a - b) % devices != 0));
      }
    }
    for (std::size_t use = 0; use < plan.blocks.uses.size(); ++use) {
      auto const bytes = plan.blocks.block_of(BlockUseId(use)).master.bytes();
      CHECK(landings.entry_bytes()[landings.index(BlockUseId(use), RoundId(0))] >= bytes);
    }
    Bytes sum = 0;
    for (auto const bytes : landings.entry_bytes()) {
      sum += align_up(bytes);
    }
    CHECK(landings.bytes() == sum);
  }
}

TEST_CASE("with fewer backward stages than devices rounds take turns, too") {
  for (bool const tied : {false, true}) {
    CAPTURE(tied);
    Planned const plan(tied);
    for (std::size_t const devices : {5, 8, 9}) {
      CAPTURE(devices);
      std::size_t const at_once = (devices + 3) / 4;  // rounds of four backward stages
      LandingRings const landings(plan.blocks, plan.stages, devices, 6);
      std::vector<std::vector<std::size_t>> all;
      for (std::size_t round = 0; round < 6; ++round) {
        for (auto const& stage : plan.rings(landings, round)) {
          all.push_back(stage);
        }
      }
      for (std::size_t a = 0; a < all.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) {
          CHECK(are_disjoint(all[a], all[b]) == ((a - b) % (4 * at_once) != 0));
        }
      }
      // A call of one round has no other round to make room for.
      LandingRings const one(plan.blocks, plan.stages, devices, 1);
      CHECK(plan.rings(one) == plan.rings(one, 1));
    }
  }
}

TEST_CASE("uses of a shared tensor land apart from everything else") {
  Planned const plan(true);
  LandingRings const landings(plan.blocks, plan.stages, 1, 1);
  std::size_t shared = 0;
  for (std::size_t a = 0; a < plan.blocks.uses.size(); ++a) {
    if (plan.blocks.block_of(BlockUseId(a)).uses.size() == 1) {
      continue;
    }
    ++shared;
    for (std::size_t b = 0; b < plan.blocks.uses.size(); ++b) {
      CHECK((landings.index(BlockUseId(a), RoundId(0)) ==
             landings.index(BlockUseId(b), RoundId(0))) == (a == b));
    }
  }
  CHECK(shared == 2);
}

TEST_CASE("without stages each use has a ring; what is not summed has none") {
  Planned const plan;
  CHECK(LandingRings(plan.blocks).entry_bytes().size() == plan.blocks.uses.size());
  auto const once = form_blocks(plan.model);
  LandingRings const none(once, plan.stages, 2, 1);
  CHECK(none.bytes() == 0);
  CHECK(error_of([&] { (void)none.index(BlockUseId(0), RoundId(0)); }).code() ==
        Errc::invalid_argument);
}

}  // namespace landing_rings_test
