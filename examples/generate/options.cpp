// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "options.hpp"

#include <common/command_line.hpp>

#include <CLI/CLI.hpp>

#include <cmath>
#include <string>

namespace generate {

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  std::string memory = "unlimited";
  CLI::App app{
      "Prints how the model of a checkpoint folder goes on after a prompt: one line of token "
      "ids.\n",
      "generate"};
  app.get_formatter()->column_width(28);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  auto const option = [&](char const* name, auto& value, char const* help) {
    return app.add_option(name, value, examples::wrapped(help))->capture_default_str();
  };
  option("--model", o.model, "Where config.json and the weights are")
      ->required()
      ->type_name("FOLDER");
  option("--adapter", o.adapter, "Low-rank adapters of the model, as peft has them")
      ->type_name("FOLDER");
  option("--prompt-ids", o.prompt, "Tokens, with commas between them: 1,2,3")
      ->required()
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->default_str("");
  option("--tokens", o.tokens, "How many tokens to add");
  option("--temperature", o.sampling.temperature, "0: always the likeliest token");
  option("--top-k", o.sampling.top_k, "Draw among so many of the likeliest; 0: all");
  option("--top-p", o.sampling.top_p, "Draw among the fewest that have this probability together");
  option("--seed", o.seed, "Of what is drawn");
  option("--precision", o.precision, "Type of the weights and between layers")
      ->check(CLI::IsMember({"as-model", "fp32", "bf16", "fp16"}));
  option("--backend", o.backend, "host or cuda (default: cuda where there is a GPU)")
      ->check(CLI::IsMember({"host", "cuda"}));
  option("--device-memory", memory, "Budget of a GPU; unlimited: what it has")->type_name("SIZE");
  if (!examples::parse(app, argc, argv)) {
    return std::nullopt;
  }
  o.device_memory = examples::budget_of("--device-memory", memory);
  if (o.tokens < 1) {
    examples::refuse("--tokens must be at least 1");
  }
  if (!std::isfinite(o.sampling.temperature) || o.sampling.temperature < 0) {
    examples::refuse("--temperature must be a finite number and not negative");
  }
  if (!(o.sampling.top_p > 0 && o.sampling.top_p <= 1)) {
    examples::refuse("--top-p must be above 0 and at most 1");
  }
  return o;
}

}  // namespace generate
