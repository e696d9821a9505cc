// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/architectures/adapter_config.hpp>

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

TensorNames const& names() {
  static TensorNames const of_model = [] {
    ModelConfig config;
    config.model_type = "llama";
    config.transformer.vocabulary = 9;
    config.transformer.hidden = 8;
    config.transformer.layers = 2;
    config.transformer.heads = 2;
    return TensorNames(config);
  }();
  return of_model;
}

}  // namespace

std::vector<std::string> roundpipe::test::seeds() {
  return {
      R"({"peft_type":"LORA","task_type":"CAUSAL_LM","r":4,"lora_alpha":16,"lora_dropout":0.1,)"
      R"("target_modules":["q_proj","model.layers.1.mlp.up_proj"],"bias":"none","loftq_config":{}})",
      R"({"peft_type":"LORA","r":1,"lora_alpha":0.5,"target_modules":"all-linear",)"
      R"("use_rslora":true,"init_lora_weights":"gaussian","base_model_name_or_path":"base"})",
  };
}

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::string_view const input(reinterpret_cast<char const*>(data), size);
  expect_answer_or_refusal([&] {
    auto const json = parse_json(bytes_of(input), "input");
    try {
      auto const config = read_adapter_config(json, "input", names());
      auto const text = adapter_config_text(config, names());
      auto const again = read_adapter_config(parse_json(bytes_of(text), "again"), "again", names());
      expect(again.lora == config.lora, "what is written is what was read");
    } catch (Error const& error) {
      expect(error.code() == Errc::bad_file || error.code() == Errc::unsupported,
             "a configuration is bad or not supported");
      expect(error.message().starts_with("'input': "), "the message names the file");
    }
  });
  return 0;
}
