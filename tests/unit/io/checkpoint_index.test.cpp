// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/checkpoint_index.hpp>

#include <support/error_of.hpp>
#include <support/stored_files.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace checkpoint_index_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

CheckpointIndex parsed(std::string_view text) {
  return parse_checkpoint_index(bytes_of(text), "index");
}

}  // namespace

TEST_CASE("an index names the file of each tensor") {
  auto const index = parsed(R"({
    "metadata": {"total_size": 12, "total_parameters": 3, "more": [1]},
    "weight_map": {"b": "model-00002-of-00002.safetensors", "a": "x.safetensors"},
    "other": null
  })");
  CHECK(index.total_size == 12);
  REQUIRE(index.weight_map.size() == 2);
  CHECK(index.weight_map.at("a") == "x.safetensors");
  CHECK(index.weight_map.at("b") == "model-00002-of-00002.safetensors");
}

TEST_CASE("an index need not say the size, or may say it as a float") {
  CHECK(parsed(R"({"weight_map": {}})").total_size == 0);
  CHECK(parsed(R"({"weight_map": {}, "metadata": {}})").total_size == 0);
  CHECK(parsed(R"({"weight_map": {}, "metadata": {"total_size": 1.6e10}})").total_size ==
        16'000'000'000);
  CHECK(parsed(R"({"weight_map": {}, "metadata": {"total_size": 9007199254740993}})").total_size ==
        9007199254740993);
}

TEST_CASE("the text of an index has not changed, and is read again") {
  CheckpointIndex const index{{{"b", "2.safetensors"}, {"a", "1.safetensors"}}, 10};
  auto const text = checkpoint_index_text(index);
  CHECK(text == R"({
  "metadata": {
    "total_size": 10
  },
  "weight_map": {
    "a": "1.safetensors",
    "b": "2.safetensors"
  }
}
)");
  CHECK(parsed(text).weight_map == index.weight_map);
  CHECK(parsed(text).total_size == 10);
  CHECK(parsed(checkpoint_index_text({})).weight_map.empty());
  CHECK(error_of([] { (void)checkpoint_index_text({{{"\xff", "1.safetensors"}}, 0}); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("large indices are read in reasonable time") {
  CheckpointIndex index;
  for (int i = 0; i < 50'000; ++i) {
    index.weight_map["model.layers." + std::to_string(i) + ".weight"] = "m.safetensors";
  }
  CHECK(parsed(checkpoint_index_text(index)).weight_map == index.weight_map);
}

}  // namespace checkpoint_index_test
