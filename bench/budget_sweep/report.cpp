// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <budget_sweep/report.hpp>

#include <roundpipe/core/bytes.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace budget_sweep {

namespace {

using train_throughput::Outcome;

double gib(roundpipe::Bytes bytes) {
  return static_cast<double>(bytes) / static_cast<double>(roundpipe::Bytes{1} << 30);
}

/// The most that any device held.
roundpipe::Bytes peak_bytes(Outcome const& outcome) {
  roundpipe::Bytes most = 0;
  for (auto const& use : outcome.device_memory) {
    most = std::max(most, use.peak_bytes);
  }
  return most;
}

/// Columns of the table, in order.
using Cells = std::array<std::string, 18>;

Cells const headings{"budget",
                     "plan",
                     "rows",
                     "M_R",
                     "rounds",
                     "stages",
                     "checkpoints",
                     "saved",
                     "recomputed",
                     "tokens/s",
                     "forecast",
                     "warm-up",
                     "vs recomp.",
                     "vs offl.",
                     "peak GiB",
                     "arena GiB",
                     "host GiB, resident",
                     "set-up s"};

std::string times(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.3f}", *ratio) : "";
}

Cells cells_of(BudgetRuns const& runs,
               Run const& run,
               roundpipe::nn::TransformerConfig const& config) {
  auto const& o = run.options;
  auto const& outcome = *run.outcome;
  auto const speed = speed_of(o, config, outcome);
  bool const is_chosen = run.plan == Plan::chosen;
  auto const forecast = [&](std::optional<double> seconds) {
    return seconds ? fmt::format("{:+.1f} %", 100 * (*seconds / speed.iteration_s - 1)) : "";
  };
  return {
      train_throughput::budget_text(o.device_memory),
      name_of(run.plan),
      std::to_string(o.rows()),
      std::to_string(o.micro_batches_per_round),
      std::to_string(o.rounds),
      fmt::format("{}+{}", outcome.forward_stages.size(), outcome.backward_stages.size()),
      outcome.checkpoints_of_layers ? "layers" : "stages",
      fmt::format("{:.1f} %", 100 * outcome.shares.kept_bytes),
      fmt::format("{:.1f} %", 100 * outcome.shares.recomputed_flops),
      fmt::format("{:.0f}", speed.tokens_per_second),
      forecast(outcome.predicted_s),
      forecast(outcome.refitted_s),
      is_chosen ? times(ratio_to(runs, Plan::recomputation, config)) : "",
      is_chosen ? times(ratio_to(runs, Plan::offloading, config)) : "",
      fmt::format("{:.2f}", gib(peak_bytes(outcome))),
      fmt::format("{:.2f}", gib(outcome.device_arena_bytes)),
      fmt::format("{:.1f}, {:.1f}", gib(outcome.host_ledger_bytes), gib(outcome.resident_bytes)),
      fmt::format("{:.1f}", outcome.setup_s)};
}

}  // namespace

char const* name_of(Plan plan) noexcept {
  switch (plan) {
    case Plan::chosen:
      return "chosen";
    case Plan::recomputation:
      return "recomputation";
    case Plan::offloading:
      break;
  }
  return "offloading";
}

std::optional<double> ratio_to(BudgetRuns const& runs,
                               Plan plan,
                               roundpipe::nn::TransformerConfig const& config) {
  auto const mean_s = [&](Plan of) -> std::optional<double> {
    double sum_s = 0;
    int count = 0;
    for (auto const& run : runs) {
      if (run.plan == of && run.outcome) {
        sum_s += speed_of(run.options, config, *run.outcome).iteration_s;
        ++count;
      }
    }
    return count > 0 ? std::optional(sum_s / count) : std::nullopt;
  };
  auto const chosen_s = mean_s(Plan::chosen);
  auto const other_s = mean_s(plan);
  return chosen_s && other_s ? std::optional(*other_s / *chosen_s) : std::nullopt;
}

std::vector<std::string> faults_of(Run const& run) {
  std::vector<std::string> faults;
  if (!run.outcome) {
    return faults;
  }
  auto const named = fmt::format(
      "{}, {}: ", train_throughput::budget_text(run.options.device_memory), name_of(run.plan));
  if (auto const peak = peak_bytes(*run.outcome);
      run.options.device_memory > 0 && peak > run.options.device_memory) {
    faults.push_back(named + fmt::format("a device held {} bytes, {} more than the budget",
                                         peak,
                                         peak - run.options.device_memory));
  }
  if (auto const& outcome = *run.outcome;
      outcome.device_ledger_bytes != outcome.device_arena_bytes) {
    faults.push_back(named + fmt::format("the ledger's lines sum to {} bytes, the arena has {}",
                                         outcome.device_ledger_bytes,
                                         outcome.device_arena_bytes));
  }
  return faults;
}

nlohmann::ordered_json to_json(BudgetRuns const& runs,
                               std::size_t index,
                               roundpipe::nn::TransformerConfig const& config) {
  auto const& run = runs[index];
  nlohmann::ordered_json json;
  json["budget"] = train_throughput::budget_text(run.options.device_memory);
  json["plan"] = name_of(run.plan);
  if (!run.outcome) {
    json["refusal"] = run.refusal;
    return json;
  }
  if (run.plan == Plan::chosen) {
    auto const add_ratio = [&](char const* name, Plan plan) {
      if (auto const ratio = ratio_to(runs, plan, config)) {
        json[name] = *ratio;
      }
    };
    add_ratio("ratio_to_recomputation", Plan::recomputation);
    add_ratio("ratio_to_offloading", Plan::offloading);
  }
  json["faults"] = faults_of(run);
  json.update(train_throughput::to_json(run.options, config, *run.outcome));
  return json;
}

void print(std::ostream& out,
           std::span<BudgetRuns const> budgets,
           roundpipe::nn::TransformerConfig const& config) {
  std::vector<Cells> table{headings};
  for (auto const& runs : budgets) {
    for (auto const& run : runs) {
      if (run.outcome) {
        table.push_back(cells_of(runs, run, config));
      }
    }
  }
  std::array<std::size_t, std::tuple_size_v<Cells>> widths{};
  for (auto const& cells : table) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      widths[i] = std::max(widths[i], cells[i].size());
    }
  }
  for (auto const& cells : table) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      bool const is_text = i < 2;
      line += is_text ? fmt::format("{:<{}}  ", cells[i], widths[i])
                      : fmt::format("{:>{}}  ", cells[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
  for (auto const& runs : budgets) {
    for (auto const& run : runs) {
      if (!run.outcome) {
        out << train_throughput::budget_text(run.options.device_memory) << ", " << name_of(run.plan)
            << ": " << run.refusal << '\n';
      }
      for (auto const& fault : faults_of(run)) {
        out << fault << '\n';
      }
    }
  }
}

}  // namespace budget_sweep
