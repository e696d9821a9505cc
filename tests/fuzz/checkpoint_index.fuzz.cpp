// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/checkpoint_index.hpp>

#include <support/fuzz_target.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

}  // namespace

std::vector<std::string> roundpipe::test::seeds() {
  return {
      checkpoint_index_text({}),
      checkpoint_index_text({{{"a", "model-00001-of-00002.safetensors"},
                              {"b", "model-00002-of-00002.safetensors"},
                              {"\xc3\xa9\"", "m.safetensors"}},
                             123456}),
      R"({"weight_map":{"a":"../model.safetensors"}})",
      R"({"weight_map":{"a":"m.safetensors","a":"m.safetensors"},"metadata":{"total_size":1.5e9}})",
      R"({"metadata":{"total_size":-1,"more":[null,true,{"x":[]}]},"weight_map":{}})",
      R"([[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]])",
  };
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const input(reinterpret_cast<char const*>(data), size);
  expect_answer_or_refusal([&] {
    auto const index = parse_checkpoint_index(bytes_of(input), "input");
    for (auto const& [tensor, shard] : index.weight_map) {
      std::filesystem::path const path(shard);
      expect(path.filename() == path && path.extension() == ".safetensors",
             "a shard lies in the folder");
    }
    auto const again = parse_checkpoint_index(bytes_of(checkpoint_index_text(index)), "input");
    expect(again.weight_map == index.weight_map && again.total_size == index.total_size,
           "an index survives writing");
  });
  return 0;
}
