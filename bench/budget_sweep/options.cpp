// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <budget_sweep/options.hpp>

#include <common/command_line.hpp>

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace budget_sweep {

std::optional<Options> parse_options(int argc, char const* const* argv) {
  Options o;
  std::vector<std::string> budgets{
      "8GiB", "12GiB", "16GiB", "24GiB", "40GiB", "80GiB", "unlimited"};
  std::string host_memory = "unlimited";
  std::string pinned;
  CLI::App app{
      "Trains a transformer under one device budget after the other, each with the plan that the\n"
      "library chooses for it, and prints a line of JSON a run and a table. Exits with 2 if a run\n"
      "took more than its budget, or if its arena was not what the ledger says.\n",
      "budget_sweep"};
  app.get_formatter()->column_width(30);
  train_throughput::add_training_options(app, o.training);
  app.add_option("--device-memory", budgets, "Budgets of each GPU; unlimited: what the card has")
      ->type_name("SIZE,...")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option(
         "--host-memory", host_memory, "Budget of the host; unlimited: what the process may take")
      ->type_name("SIZE")
      ->capture_default_str();
  app.add_flag("--against",
               o.against,
               "Run each budget three times more: with full recomputation (checkpoints between "
               "stages, nothing offloaded; the forecast chooses the rest), at the chosen "
               "micro-batches with the saves of as many of them offloaded as the host has room "
               "for, and with the chosen plan again");
  app.add_option("--pin",
                 pinned,
                 "Pin this much host memory, which no plan may exceed, once for all runs: shortens "
                 "their set-up. Its page tables, 2 MiB a GiB, then count twice in the budgets")
      ->type_name("SIZE");
  if (!examples::parse(app, argc, argv)) {
    return std::nullopt;
  }
  for (auto const& text : budgets) {
    o.budgets.push_back(examples::budget_of("--device-memory", text));
  }
  o.training.host_memory = examples::budget_of("--host-memory", host_memory);
  o.pinned = pinned.empty() ? 0 : examples::bytes_of("--pin", pinned);
  if (o.pinned > 0 && (o.training.host_memory == 0 || o.training.host_memory > o.pinned)) {
    o.training.host_memory = o.pinned;
  }
  train_throughput::complete(o.training);
  return o;
}

}  // namespace budget_sweep
