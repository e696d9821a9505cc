// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <plain_loop/options.hpp>

#include <common/command_line.hpp>

#include <CLI/CLI.hpp>

#include <optional>
#include <string>

namespace plain_loop {

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  bool no_copies = false;
  CLI::App app{
      "Trains the transformer of train_throughput in a plain loop on one GPU, in bf16: weights,\n"
      "gradients and all that layers save stay on the device, nothing is recomputed, and there is\n"
      "no pipeline. What a pipeline with room for everything trains less than that is its price.\n",
      "plain_loop"};
  app.get_formatter()->column_width(30);
  throughput::add_options(app, o);
  app.add_option("--rows", o.rows, "Sequences in a micro-batch")->capture_default_str();
  app.add_flag("--no-copies",
               no_copies,
               "Leave out that gradients go down and weights come up once an iteration, beside the "
               "next one");
  app.add_flag("--optimizer",
               o.optimizer,
               "Update the weights on the host in between, also beside the next iteration (AdamW, "
               "fp32 states); without it the weights stay the first ones");
  app.add_option("--json", o.json, "Write the report there; -: to the standard output")
      ->type_name("FILE");
  if (!examples::parse(app, argc, argv)) {
    return std::nullopt;
  }
  o.copies = !no_copies;
  throughput::check(o);
  if (o.rows < 1 || o.batch % o.rows != 0) {
    examples::refuse("--batch must be a multiple of --rows");
  }
  if (o.optimizer && !o.copies) {
    examples::refuse("--optimizer needs the copies that --no-copies leaves out");
  }
  return o;
}

}  // namespace plain_loop
