// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/adaws/adaws_terms.hpp>

#include <roundpipe/adaws/adaws.hpp>
#include <roundpipe/model/byte_description.hpp>
#include <roundpipe/model/kept_saves.hpp>
#include <roundpipe/model/parameter_blocks.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace adaws_terms_test {

using namespace roundpipe;
using test::error_of;

namespace {

/// Three equal layers and the loss.
std::vector<LayerBytes> four_layers() {
  std::vector<LayerBytes> layers(3, {64_KiB, 64_KiB, 16_KiB, 256_KiB, 4_KiB});
  layers.push_back({64_KiB, 64_KiB, 0, 0, 4_KiB});
  return layers;
}

/// A stage a layer.
StagePlan planned(ModelDescription const& model, Buffering buffering, WorkingSet const& set) {
  return lay_out_stages(model,
                        form_blocks(model),
                        {{{0, 1}, {1, 1}, {2, 1}}, {{3, 1}, {2, 1}, {1, 1}, {0, 1}}},
                        buffering,
                        set);
}

}  // namespace

TEST_CASE("a plan that does what AdaWS chooses is in its terms the same") {
  AdawsProblem problem;
  problem.bytes = four_layers();
  problem.costs.assign(4, {.forward_s = 1e-3, .backward_s = 2e-3});
  problem.device.memory_bytes = 2_MiB;
  problem.device.upload_bytes_per_second = 256e6;
  problem.device.download_bytes_per_second = 256e6;
  problem.host_bytes = 1_GiB;
  problem.sequences = 8;
  auto chosen = solve_adaws(problem).configuration;
  auto const kept = static_cast<std::size_t>(chosen.saved_share * double(chosen.chunks));
  REQUIRE(kept > 0);
  REQUIRE(kept < chosen.chunks);
  auto const model = describe_bytes(problem.bytes);
  auto const plan = planned(model,
                            {.parameters = chosen.parameter_entries,
                             .gradients = chosen.gradient_entries,
                             .saves = chosen.save_entries},
                            spread_saves(model, kept, chosen.chunks));
  chosen.saved_share = double(kept) / double(chosen.chunks);  // whole micro-batches
  CHECK(adaws_terms(model,
                    plan,
                    {.micro_batches_per_round = chosen.chunks, .rounds = chosen.rounds}) == chosen);
}

TEST_CASE("recomputation alone is A_save = 0, with no entries for saves") {
  auto const model = describe_bytes(four_layers());
  for (auto const checkpoints : {Checkpoints::stages, Checkpoints::layers}) {
    auto const plan = planned(model, {}, WorkingSet(checkpoints));
    CHECK(adaws_terms(model, plan, {.micro_batches_per_round = 4, .rounds = 3}) ==
          AdawsConfiguration{3, 4, 2, 0, 2, 0});
  }
}

TEST_CASE("A_save counts bytes of forward stages; the fused stage recomputes nothing") {
  auto const model = describe_bytes(four_layers());
  auto const set = keep_levels(model, {{1, 1}, {1, 0}, {0, 0}}, 2);
  PlanOptions const options{.micro_batches_per_round = 2};
  CHECK(adaws_terms(model, planned(model, {}, set), options).saved_share == 0.5);
  auto rounds = set;  // the last of three rounds keeps nothing
  rounds.set_round(2, keep_levels(model, {}, 2));
  CHECK(adaws_terms(model, planned(model, {}, rounds), {.micro_batches_per_round = 2, .rounds = 3})
            .saved_share == doctest::Approx(1.0 / 3));
  auto const half =
      lay_out_stages(model, form_blocks(model), {{{0, 1}}, {{1, 3}, {0, 1}}}, {}, set);
  CHECK(adaws_terms(model, half, options).saved_share == 1);
  auto const fused = lay_out_stages(model, form_blocks(model), {{}, {{0, 4}}}, {});
  CHECK(adaws_terms(model, fused, options).saved_share == 1);
  CHECK(error_of([&] { (void)adaws_terms(model, fused, {.devices = 2}); }).code() ==
        Errc::unsupported);
}

TEST_CASE("A_save is over all rounds of a call, of which some have save levels of their own") {
  auto const model = describe_bytes(four_layers());
  auto const all = keep_levels(model, {{1, 1}, {1, 1}, {1, 1}}, 2);
  auto const none = keep_levels(model, {}, 2);
  auto const share = [&](WorkingSet const& set, std::size_t rounds) {
    return adaws_terms(
               model, planned(model, {}, set), {.micro_batches_per_round = 2, .rounds = rounds})
        .saved_share;
  };
  auto first_keeps = none;
  first_keeps.set_round(0, all);
  CHECK(share(first_keeps, 1) == 1);
  CHECK(share(first_keeps, 4) == 0.25);
  auto ends_keep_less = all;
  ends_keep_less.set_round(0, none);
  ends_keep_less.set_round(3, keep_levels(model, {{1, 1}, {1, 0}, {0, 0}}, 2));
  CHECK(share(ends_keep_less, 4) == 0.625);  // 0, 1, 1 and a half
}

}  // namespace adaws_terms_test
