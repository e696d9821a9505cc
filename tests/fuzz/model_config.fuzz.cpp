// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/architectures/model_config.hpp>

#include <roundpipe/architectures/tensor_names.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/json.hpp>
#include <support/fuzz_target.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

}  // namespace

std::vector<std::string> roundpipe::test::seeds() {
  std::string const sizes =
      R"("vocab_size":9,"hidden_size":8,"intermediate_size":8,"num_hidden_layers":2,)"
      R"("num_attention_heads":2,"num_key_value_heads":1,"max_position_embeddings":64)";
  return {
      R"({"model_type":"llama",)" + sizes +
          R"(,"rope_scaling":{"rope_type":"llama3","factor":8,"low_freq_factor":1,)"
          R"("high_freq_factor":4,"original_max_position_embeddings":32},"mlp_bias":true})",
      R"({"model_type":"qwen2",)" + sizes +
          R"(,"use_sliding_window":true,"sliding_window":4,"max_window_layers":1,)"
          R"("layer_types":["full_attention","sliding_attention"]})",
      R"({"model_type":"qwen3","head_dim":6,)" + sizes +
          R"(,"rope_parameters":{"rope_type":"yarn","rope_theta":1e4,"factor":2,"truncate":false}})",
      R"({"model_type":"mistral","sliding_window":null,"architectures":["MistralForCausalLM"],)" +
          sizes + R"(,"rope_scaling":{"type":"linear","factor":2.5}})",
  };
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const input(reinterpret_cast<char const*>(data), size);
  expect_answer_or_refusal([&] {
    auto const json = parse_json(bytes_of(input), "input");
    try {
      auto const config = read_model_config(json, "input");
      expect(config.transformer.layers <= architectures::most_layers, "layers can be listed");
      expect(!TensorNames(config).pairs().empty(), "tensors have names");
    } catch (Error const& error) {
      expect(error.code() == Errc::bad_file || error.code() == Errc::unsupported,
             "a configuration is bad or not supported");
      expect(error.message().starts_with("'input': "), "the message names the file");
    }
  });
  return 0;
}
