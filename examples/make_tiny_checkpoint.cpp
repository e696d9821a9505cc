// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Writes a checkpoint of random weights in the shape of a known architecture, tiny or
/// large, for trying out what reads checkpoints. `make_tiny_checkpoint --help` lists the options.

#include <common/command_line.hpp>
#include <common/named_shapes.hpp>
#include <common/precision.hpp>
#include <common/run_program.hpp>
#include <roundpipe/architectures/known_architectures.hpp>
#include <roundpipe/architectures/model_config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/json.hpp>
#include <roundpipe/nn/rope_scaling.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "make_tiny_checkpoint/byte_tokens.hpp"
#include "make_tiny_checkpoint/config_json.hpp"
#include "make_tiny_checkpoint/random_weights.hpp"

namespace make_tiny_checkpoint {
namespace {

namespace rp = roundpipe;
using namespace rp::literals;

struct Options {
  std::string output;
  std::string shape;  ///< Empty: the sizes below.
  rp::ModelConfig config{.model_type = "qwen3",
                         .transformer = {.vocabulary = 256,
                                         .hidden = 64,
                                         .layers = 2,
                                         .heads = 4,
                                         .kv_heads = 2,
                                         .norm_epsilon = 1e-6},
                         .longest_context = 256};
  bool bias = false;
  std::string rope_scaling = "none";
  double rope_factor = 4;
  std::string type = "fp32";
  rp::Bytes most_file_bytes = 5'000'000'000;
  std::uint64_t seed = 1;
  std::vector<std::string> text;
  std::string tokens;
};

void set_rope_scaling(Options& o) {
  using Kind = rp::nn::RopeScaling::Kind;
  auto& scaling = o.config.transformer.rope_scaling;
  if (o.rope_scaling == "none") {
    return;
  }
  if (!(std::isfinite(o.rope_factor) && o.rope_factor >= 1)) {
    examples::refuse("--rope-factor must be at least 1");
  }
  scaling.kind = o.rope_scaling == "linear"   ? Kind::linear
                 : o.rope_scaling == "llama3" ? Kind::llama3
                                              : Kind::yarn;
  scaling.factor = o.rope_factor;
  scaling.original_max_position_embeddings =
      static_cast<double>(o.config.longest_context) / o.rope_factor;
}

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  auto& c = o.config.transformer;
  std::string file_bytes = "5GB";
  CLI::App app{
      "Writes a checkpoint of random weights: config.json, model.safetensors and, for a\n"
      "vocabulary of 256, a tokenizer of bytes. Sizes take KiB, MiB and GiB.\n",
      "make_tiny_checkpoint"};
  app.get_formatter()->column_width(28);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  auto const option = [&](char const* name, auto& value, std::string const& help) {
    return app.add_option(name, value, examples::wrapped(help))->capture_default_str();
  };
  auto const size = [&](char const* name, std::int64_t& value, char const* help) {
    option(name, value, help)->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  };
  option("--output", o.output, "The folder, which is made and must hold no weights")
      ->required()
      ->type_name("FOLDER");
  auto* const shape = option("--shape",
                             o.shape,
                             "The sizes of a published model, one of " + examples::shape_names() +
                                 ", in place of those below");
  auto* const architecture =
      option("--architecture", o.config.model_type, "One of " + rp::architecture_names());
  size("--vocabulary", c.vocabulary, "Tokens; with 256, they are bytes");
  size("--hidden", c.hidden, "Width of the vectors between layers");
  size("--layers", c.layers, "Transformer blocks");
  size("--heads", c.heads, "Query heads");
  size("--kv-heads", c.kv_heads, "Key and value heads; must divide --heads");
  option("--head-dim", c.head_dim, "Of a head, even; 0: --hidden over --heads");
  option("--intermediate", c.intermediate, "Width within blocks; 0: about 8/3 of --hidden");
  size("--context", o.config.longest_context, "Positions that the model is made for");
  app.add_flag("--tied", c.tied, "One table for the embedding and the head");
  app.add_flag("--bias", o.bias, "Biases where the architecture leaves the choice: llama, qwen3");
  option("--window",
         c.sliding_window,
         "Positions of a sliding window: mistral, qwen2, qwen3; 0: none");
  option("--rope-theta", c.rope_theta, "Base of the rotary frequencies");
  option("--rope-scaling", o.rope_scaling, "Of the rotary frequencies, which stretches the context")
      ->check(CLI::IsMember({"none", "linear", "llama3", "yarn"}));
  option("--rope-factor", o.rope_factor, "By which --rope-scaling has stretched it");
  option("--initializer-range", c.initial_deviation, "Deviation of the matrices' elements");
  option("--dtype", o.type, "Of the weights")->check(CLI::IsMember({"fp32", "bf16", "fp16"}));
  option("--file-bytes", file_bytes, "Begin a new file of weights at this size")->type_name("SIZE");
  option("--seed", o.seed, "Equal seeds give equal weights");
  auto* const text = option("--text",
                            o.text,
                            "Files to write as tokens, a byte each and a document each, to the "
                            "file that --tokens names; needs a vocabulary of 256")
                         ->type_name("FILE")
                         ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                         ->default_str("");
  option("--tokens", o.tokens, "Where the tokens of --text go")->type_name("FILE")->needs(text);
  if (!examples::parse(app, argc, argv)) {
    return std::nullopt;
  }
  o.most_file_bytes = examples::bytes_of("--file-bytes", file_bytes);
  if (shape->count() > 0) {
    auto const& shapes = examples::named_shapes();
    auto const found = shapes.find(o.shape);
    if (found == shapes.end()) {
      examples::refuse("--shape: '" + o.shape + "' is none of " + examples::shape_names());
    }
    if (architecture->count() > 0) {
      examples::refuse("--shape says the architecture; --architecture has no place beside it");
    }
    auto const deviation = c.initial_deviation;
    o.config = found->second;
    c.initial_deviation = deviation;
  } else {
    c.output_bias = c.mlp_bias = o.bias;
    set_rope_scaling(o);
  }
  o.config.dtype = examples::type_named(o.type);
  if (o.text.empty() != o.tokens.empty()) {
    examples::refuse("--text and --tokens go together");
  }
  if (!o.text.empty() && c.vocabulary != 256) {
    examples::refuse("--text is for a vocabulary of 256, the bytes");
  }
  return o;
}

void run(Options const& o) {
  std::filesystem::path const folder(o.output);
  auto const text = rp::json_text(config_json(o.config), 2) + "\n";
  // As every reader of the folder will see the model.
  auto config = rp::read_model_config(nlohmann::json::parse(text), "config.json");
  rp::WorkerPool pool(rp::usable_cpus().threads);
  auto const parameters = write_random_weights(config, o.seed, folder, o.most_file_bytes, pool);
  rp::write_file(folder / "config.json", text);
  if (config.transformer.vocabulary == 256) {
    rp::write_file(folder / "tokenizer.json", byte_tokenizer_json());
    rp::write_file(folder / "tokenizer_config.json",
                   "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n");
  }
  fmt::print("{}: {}, {} parameters\n", o.output, config.model_type, parameters);
  if (!o.tokens.empty()) {
    fmt::print("{}: {} tokens\n", o.tokens, write_byte_tokens(o.text, o.tokens));
  }
}

}  // namespace
}  // namespace make_tiny_checkpoint

int main(int argc, char** argv) {
  using namespace make_tiny_checkpoint;
  return examples::run_program("make_tiny_checkpoint", parse_options, run, argc, argv);
}
