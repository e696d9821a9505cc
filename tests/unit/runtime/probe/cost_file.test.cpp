// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/probe/cost_file.hpp>

#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace cost_file_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

ModelDescription described(std::size_t dense = 3, BatchShape capacity = {2, 3}) {
  return describe(toy_model({.dense = dense}), capacity);
}

DeviceProperties const device{.name = "a card"};
constexpr std::size_t devices = 2;

/// Costs that no short decimal tells.
CostModel some_costs(std::size_t layers = 5, double forward_s = 0.1) {
  std::vector<LayerCost> costs(layers, LayerCost{forward_s / 3, 1e-7 / 3});
  costs[0].backward_s = 0;
  for (std::size_t i = 1; i < layers; ++i) {
    costs[i].replay_s = {forward_s / 7, forward_s / 9};
  }
  return CostModel(costs);
}

void check_equal(std::optional<CostModel> const& found, CostModel const& wanted) {
  REQUIRE(found.has_value());
  REQUIRE(found->layers().size() == wanted.layers().size());
  for (std::size_t i = 0; i < wanted.layers().size(); ++i) {
    CHECK(found->layers()[i].forward_s == wanted.layers()[i].forward_s);
    CHECK(found->layers()[i].backward_s == wanted.layers()[i].backward_s);
    CHECK(found->layers()[i].replay_s == wanted.layers()[i].replay_s);
  }
}

std::string text_of(std::string const& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("costs survive writing and reading, to the last bit") {
  TemporaryFolder const folder;
  std::string const path = folder.path / "costs";
  CHECK_FALSE(find_costs(path, described(), device, devices).has_value());  // there is no file
  keep_costs(path, described(), device, devices, some_costs());
  check_equal(find_costs(path, described(), device, devices), some_costs());
}

TEST_CASE("costs of other models, sizes and devices stay, and new ones replace the old") {
  TemporaryFolder const folder;
  std::string const path = folder.path / "costs";
  DeviceProperties const other{.name = "another card"};
  keep_costs(path, described(), device, devices, some_costs(5, 1));
  CHECK_FALSE(find_costs(path, described(4), device, devices).has_value());
  CHECK_FALSE(find_costs(path, described(3, {1, 6}), device, devices).has_value());
  CHECK_FALSE(find_costs(path, described(), other, devices).has_value());
  keep_costs(path, described(4), device, devices, some_costs(6, 2));
  keep_costs(path, described(3, {1, 6}), device, devices, some_costs(5, 3));
  keep_costs(path, described(), other, devices, some_costs(5, 4));
  keep_costs(path, described(), device, devices, some_costs(5, 5));
  check_equal(find_costs(path, described(4), device, devices), some_costs(6, 2));
  check_equal(find_costs(path, described(3, {1, 6}), device, devices), some_costs(5, 3));
  check_equal(find_costs(path, described(), other, devices), some_costs(5, 4));
  check_equal(find_costs(path, described(), device, devices), some_costs(5, 5));
}

TEST_CASE("costs of one number of devices are not taken for those of another") {
  TemporaryFolder const folder;
  std::string const path = folder.path / "costs";
  keep_costs(path, described(), device, 1, some_costs(5, 1));
  CHECK_FALSE(find_costs(path, described(), device, 4).has_value());
  keep_costs(path, described(), device, 4, some_costs(5, 2));
  check_equal(find_costs(path, described(), device, 1), some_costs(5, 1));
  check_equal(find_costs(path, described(), device, 4), some_costs(5, 2));
  CHECK(cost_key(described(), device, 4).find(" on 4 x a card, ") != std::string::npos);
}

TEST_CASE("costs of files that do not tell the number of devices are not found, and stay") {
  TemporaryFolder const folder;
  std::string const path = folder.path / "costs";
  keep_costs(path, described(), device, 1, some_costs());
  auto text = text_of(path);
  text.erase(text.find("1 x a card"), 4);
  std::ofstream(path) << text;
  CHECK_FALSE(find_costs(path, described(), device, 1).has_value());
  keep_costs(path, described(), device, 1, some_costs());
  check_equal(find_costs(path, described(), device, 1), some_costs());
  CHECK(text_of(path).find(" on a card, ") != std::string::npos);
}

TEST_CASE("the key tells apart all that layers say of their work") {
  auto const key = cost_key(described(), device, devices);
  CHECK(key == cost_key(described(), device, devices));
  auto const changed = [&](auto const& change) {
    auto model = described();
    change(model.layers[1]);
    return cost_key(model, device, devices) != key;
  };
  CHECK(changed([](LayerFacts& facts) { facts.name += "s"; }));
  CHECK(changed([](LayerFacts& facts) { facts.parameters.at(0).tensor.dtype = DType::bf16; }));
  CHECK(changed([](LayerFacts& facts) { facts.parameters.at(0).frozen = true; }));
  CHECK(changed([](LayerFacts& facts) { facts.input = {{"x", {7}}}; }));
  CHECK(changed([](LayerFacts& facts) { facts.boundary = {{"x", {7}}}; }));
  CHECK(changed([](LayerFacts& facts) { facts.side_inputs = {{"x", {7}}}; }));
  CHECK(changed([](LayerFacts& facts) { facts.results = {{"x", {7}}}; }));
  CHECK(changed([](LayerFacts& facts) { ++facts.footprint.saved_bytes; }));
  CHECK(changed([](LayerFacts& facts) { ++facts.footprint.workspace_bytes; }));
  CHECK(changed([](LayerFacts& facts) { facts.save_levels.push_back(1); }));
  CHECK(changed([](LayerFacts& facts) { facts.work.forward_flops += 1; }));
  CHECK(changed([](LayerFacts& facts) { facts.work.backward_flops += 1; }));
  CHECK(changed([](LayerFacts& facts) { facts.work.replay_flops.push_back(1); }));
}

TEST_CASE("the format of the file has not changed") {
  TemporaryFolder const folder;
  std::string const path = folder.path / "costs";
  std::vector<LayerCost> costs(5, LayerCost{0.0029, 0.0064});
  costs[0] = {0.00015, 0.00025};
  costs[1].replay_s = costs[2].replay_s = {0.002, 0.001};
  keep_costs(path, described(), device, devices, CostModel(costs));
  CHECK(text_of(path) ==
        "roundpipe costs 1\n"
        "# layers: how many equal ones; seconds of their forward, backward, and recomputation from "
        "each save level\n\n" +
            cost_key(described(), device, devices) +
            "\nlayers 1 0.00015 0.00025\nlayers 2 0.0029 0.0064 0.002 0.001\n"
            "layers 2 0.0029 0.0064\n");
}

TEST_CASE("a damaged or foreign file is refused by name, and stays as it is") {
  TemporaryFolder const folder;
  std::string const path = folder.path / "costs";
  keep_costs(path, described(), device, devices, some_costs());
  auto const text = text_of(path);
  auto const refusal = [&](std::string const& content) {
    std::ofstream(path) << content;
    auto const error = error_of([&] { (void)find_costs(path, described(), device, devices); });
    CHECK(error.code() == Errc::invalid_argument);
    CHECK(error.message().find(path) != std::string::npos);
    CHECK(text_of(path) == content);
    return error.message();
  };
  auto const changed = [&](std::string const& word, std::string const& other) {
    auto content = text;
    auto const place = content.find(word);
    REQUIRE(place != std::string::npos);
    return refusal(content.replace(place, word.size(), other));
  };
  CHECK(refusal("").find("'roundpipe costs 1'") != std::string::npos);
  (void)changed("roundpipe costs 1", "roundpipe costs 2");
  CHECK(changed("layers 1 ", "layer 1 ").find("line 5 is 'layer 1 ") != std::string::npos);
  (void)changed("layers 1 ", "layers 0 ");
  (void)changed("layers 1 ", "layers -1 ");
  (void)changed("layers 1 ", "layers 99999999999 ");
  (void)changed("layers 1 ", "layers one ");
  (void)changed("layers 1 ", "layers 1 -");
  (void)changed("layers 1 ", "layers 1 nan ");
  (void)changed("layers 1 ", "layers 1 1s ");
  (void)changed(" x a card", " x a card\nlayers 1 2\n");
  CHECK(changed("layers 1 ", "layers 2 ").find("6 layers") != std::string::npos);
  (void)changed("\ncosts of", "\n# costs of");
  for (auto size = text.size() - 1; size > text.find("\ncosts of") + 1; --size) {
    (void)refusal(text.substr(0, size));  // cut off anywhere behind its head
  }
  auto const late = error_of([&] { keep_costs(path, described(), device, devices, some_costs()); });
  CHECK(late.code() == Errc::invalid_argument);

  CHECK(error_of([&] { (void)find_costs(folder.path, described(), device, devices); }).code() ==
        Errc::invalid_argument);
  auto const nowhere = error_of([&] {
    keep_costs(folder.path / "none" / "costs", described(), device, devices, some_costs());
  });
  CHECK(nowhere.code() == std::errc::io_error);
  CHECK(nowhere.message().find("none/costs") != std::string::npos);
}

TEST_CASE("a file that several threads replace is whole at every moment") {
  TemporaryFolder const folder;
  std::string const path = folder.path / "costs";
  keep_costs(path, described(), device, devices, some_costs());
  std::vector<std::thread> writers;
  for (std::size_t writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, writer] {
      for (std::size_t i = 0; i < 20; ++i) {
        keep_costs(
            path, described(4, {1, static_cast<int>(writer + 1)}), device, devices, some_costs(6));
      }
    });
  }
  for (std::size_t i = 0; i < 100; ++i) {
    check_equal(find_costs(path, described(), device, devices), some_costs());
  }
  for (auto& writer : writers) {
    writer.join();
  }
  check_equal(find_costs(path, described(), device, devices), some_costs());
  std::vector<std::filesystem::path> const left(std::filesystem::directory_iterator(folder.path),
                                                {});
  CHECK(left == std::vector{std::filesystem::path(path)});
}

}  // namespace cost_file_test
