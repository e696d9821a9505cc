// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/model/working_set.hpp>
#include <roundpipe/runtime/pipeline_options.hpp>
#include <support/contains.hpp>
#include <train_throughput/options.hpp>
#include <train_throughput/outcome.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <vector>

namespace train_throughput_test {
namespace {

using namespace train_throughput;
using roundpipe::Error;
using roundpipe::test::contains;

Options parse(std::vector<char const*> arguments) {
  arguments.insert(arguments.begin(), "train_throughput");
  return parse_options(static_cast<int>(arguments.size()), arguments.data()).value();
}

roundpipe::PipelineOptions pins_of(std::vector<char const*> arguments) {
  roundpipe::PipelineOptions options;
  pin_plan(parse(std::move(arguments)), options);
  return options;
}

TEST_CASE("the forecast chooses what of the cut is not given, and all where that is asked for") {
  CHECK(parse({}).chooses_cut());
  CHECK(parse({"--auto"}).chooses_cut());
  auto const half = parse({"--micro-batches", "4"});
  CHECK(half.chooses_cut());
  CHECK(half.micro_batches_per_round == 4);
  CHECK(half.rounds == 0);  // left open
  CHECK(parse({"--rounds", "2"}).chooses_cut());
  CHECK(!parse({"--micro-batches", "4", "--rounds", "2"}).chooses_cut());
  CHECK(parse({"--micro-batches", "4", "--rounds", "2", "--auto"}).chooses_cut());
  CHECK_THROWS_AS(parse({"--batch", "8", "--micro-batches", "3"}), Error);
  CHECK_THROWS_AS(parse({"--micro-batches", "4", "--offload", "5"}), Error);
  CHECK(parse({"--offload", "5"}).offload == 5);
}

TEST_CASE("every decision of a plan can be pinned") {
  auto const open = pins_of({});
  CHECK(!open.checkpoints);
  CHECK(!open.offloaded_micro_batches);
  CHECK(!open.overlaps_rounds);
  CHECK(!open.resident_parameters);
  CHECK(!open.resident_boundaries);
  CHECK(!open.peer_boundaries);
  CHECK(!open.buffering);
  CHECK(pins_of({"--checkpoints", "layers"}).checkpoints == roundpipe::Checkpoints::layers);
  CHECK(pins_of({"--checkpoints", "stages"}).checkpoints == roundpipe::Checkpoints::stages);
  CHECK(pins_of({"--offload", "2"}).offloaded_micro_batches == 2);
  CHECK(pins_of({"--overlap", "on"}).overlaps_rounds == true);
  CHECK(pins_of({"--overlap", "off"}).overlaps_rounds == false);
  CHECK(pins_of({"--resident-parameters", "off"}).resident_parameters == false);
  CHECK(pins_of({"--resident-boundaries", "on"}).resident_boundaries == true);
  CHECK(pins_of({"--peer-boundaries", "off"}).peer_boundaries == false);
  CHECK(pins_of({"--ring-entries", "3,2,4,5"}).buffering == roundpipe::Buffering{3, 2, 4, 5});
  CHECK_THROWS_AS(parse({"--ring-entries", "2,2,2"}), Error);
  CHECK_THROWS_AS(parse({"--ring-entries", "2,0,2,2"}), Error);
  CHECK_THROWS_AS(parse({"--ring-entries", "2,2,2,65"}), Error);
  CHECK_THROWS_AS(parse({"--resident-parameters", "some"}), Error);
}

TEST_CASE("a plan is printed with the cut, its decisions and the ledger") {
  using Space = roundpipe::LedgerLine::Space;
  auto const config =
      roundpipe::nn::TransformerConfig{.vocabulary = 64, .hidden = 32, .heads = 2}.resolved();
  auto o = parse({"--micro-batches", "4", "--rounds", "2"});
  Outcome outcome;
  outcome.decisions = {{"saves", "none", "pinned"}};
  outcome.ledger = {{Space::device, "parameters x2", 3 << 20}, {Space::host, "batches", 1 << 20}};
  auto const text = [&] {
    std::ostringstream out;
    print_plan(out, o, config, outcome);
    return out.str();
  };
  CHECK(contains(text(), "2 round(s) of 4 micro-batches"));
  CHECK(contains(text(), "\ncut                       pinned\n"));
  CHECK(contains(text(), "\n  saves        none; pinned\n"));
  CHECK(contains(text(), "\nledger of each device: 3.00 MiB\n  parameters x2 "));
  CHECK(contains(text(), "\nledger of the host: 1.00 MiB\n  batches "));
  outcome.automatic = "2 rounds, for some reason";
  outcome.automatic_s = 2;
  outcome.measured_s = 0.5;
  outcome.planned_s = 1;
  outcome.iterations_s = {1};
  CHECK(contains(text(),
                 "\ncut                       2 rounds, for some reason; in 2.0 s: 0.5 s measured, "
                 "1.0 s planned\n"));
  CHECK(to_json(o, config, outcome).at("decisions").at("saves").at("reason") == "pinned");
}

}  // namespace
}  // namespace train_throughput_test
