// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/rank_division.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/simulate/forecast.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rank_division_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

HostRoom named(Bytes budget) {
  return {.budget = budget, .least = 1000, .most = 11000};
}
HostRoom unnamed(Bytes budget) {
  return {.budget = budget, .least = 1000, .most = 11000, .is_named = false};
}

}  // namespace

TEST_CASE("shares follow the room that named budgets leave") {
  CHECK(shares_of(std::vector{named(9000), named(3000)}) == std::vector{0.8, 0.2});
  CHECK(shares_of(std::vector{named(41000), named(1000)}) == std::vector{4.0, 0.0});
  CHECK(shares_of(std::vector{unnamed(41000), named(11000)}) == std::vector{4.0, 1.0});
}

TEST_CASE("without named budgets shares are equal, unless a rank has no room for that") {
  CHECK(shares_of(std::vector{unnamed(6000), unnamed(90000)}) == std::vector{1.0, 1.0});
  CHECK(shares_of(std::vector{unnamed(5000), unnamed(21000)}) == std::vector{0.4, 2.0});
}

TEST_CASE("a refusal names the rank with the least room and a budget with which all have enough") {
  auto const error = error_of([] { (void)shares_of(std::vector{named(9000), named(2000)}); });
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message().find("rank 1: the host budget of 1.95 KiB is too small") == 0);
  CHECK(error.message().find("(3100 bytes)") != std::string::npos);
  CHECK(shares_of(std::vector{named(9000), named(3100)}).size() == 2);
}

TEST_CASE("a rank that has no room though others keep all is named, with what it takes") {
  auto const error = error_of([] { (void)shares_of(std::vector{named(900000), named(999)}); });
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message().find("rank 1: ") == 0);
  CHECK(error.message().find("(1000 bytes)") != std::string::npos);
}

namespace {

/// What two ranks agree on when rank r takes 1000 bytes and 10000 times its part of the states, and
/// layers take 2 s; or how they refuse.
struct Agreement {
  std::array<PipelineOptions, 2> options;
  std::array<std::string, 2> errors;

  explicit Agreement(std::array<PipelineOptions, 2> given) : options(std::move(given)) {
    LoopbackNetwork network(2);
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        LoopbackGroup group(network, r);
        auto& own = options[r] = with_ranks(options[r], group);
        auto const bytes = [&](PipelineOptions const& each) {
          CHECK(each.host_memory > own.host_memory);  // the plan itself must not refuse
          auto const& shares = each.rank_shares;
          auto const part = shares.empty() ? 0.5 : shares[r] / (shares[0] + shares[1]);
          return Bytes{1000} + static_cast<Bytes>(10000 * part + 0.5);
        };
        try {
          agree_on_division(group, own, CostModel({{0.5, 1.5}}), bytes, true);
        } catch (Error const& error) {
          errors[r] = error.message();
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
  }
};

}  // namespace

TEST_CASE("ranks agree on shares by their budgets, and on speeds by their devices") {
  PipelineOptions const large{.devices = 3, .measures_rank_speeds = true, .host_memory = 9000};
  PipelineOptions const small{.devices = 1, .measures_rank_speeds = true, .host_memory = 3000};
  Agreement const agreed({large, small});
  for (auto const& options : agreed.options) {
    CHECK(options.rank_shares == std::vector{0.8, 0.2});
    CHECK(options.rank_speeds == std::vector{1.5, 0.5});
  }
  CHECK(agreed.errors == std::array<std::string, 2>{});
}

TEST_CASE("ranks measure their network where one of them measures costs, and forecasts know it") {
  LoopbackNetwork network(2, {.bytes_per_second = 1e8, .latency = std::chrono::milliseconds(1)});
  std::array<NetworkCost, 2> costs;
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup group(network, r);
      HostBackend backend({.devices = 1});
      PipelineOptions options{.capacity = {2, 3},
                              .costs = r == 0 ? CostSource::measured : CostSource::estimated};
      NetworkCost seen;
      options.forecast = [&](auto const&, auto const&, CostModel const& known, auto const&) {
        seen = known.network();
        return 1.0;
      };
      Pipeline pipeline{toy_model({}), Sgd{}, backend, options, Policies{.group = group}};
      costs[r] = pipeline.plan().costs.network();
      CHECK(seen == costs[r]);
      CHECK(pipeline.report().network == costs[r]);
      auto const machine = training_machine(pipeline.plan().costs, DeviceProperties{});
      CHECK(machine.compute.network_bytes_per_second == costs[r].bytes_per_second);
      CHECK(machine.compute.network_latency_s == costs[r].latency_s);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  CHECK(costs[0] == costs[1]);
  CHECK(costs[0].latency_s > 0);
}

TEST_CASE("a network that ranks know is not measured again, and forecasts know it") {
  NetworkCost const known{.bytes_per_second = 12345, .latency_s = 0.25};
  LoopbackNetwork network(2);
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup group(network, r);
      HostBackend backend({.devices = 1});
      PipelineOptions options{.capacity = {2, 3},
                              .costs = r == 0 ? CostSource::measured : CostSource::estimated,
                              .network = known};
      Pipeline pipeline{toy_model({}), Sgd{}, backend, options, Policies{.group = group}};
      CHECK(pipeline.plan().costs.network() == known);
      CHECK(pipeline.report().network == known);
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

TEST_CASE("what fails on one rank while they agree fails on all, with its number") {
  LoopbackNetwork network(2);
  std::array<Error, 2> errors{Error(Errc::aborted, ""), Error(Errc::aborted, "")};
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup group(network, r);
      auto options = with_ranks({.devices = 1, .host_memory = 9000}, group);
      auto const bytes = [&](PipelineOptions const&) -> Bytes {
        require(r == 0, Errc::over_budget, "no device is that small");
        return 1000;
      };
      errors[r] = error_of(
          [&] { agree_on_division(group, options, CostModel({{0.5, 1.5}}), bytes, true); });
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (auto const& error : errors) {
    CHECK(error.code() == Errc::over_budget);
    CHECK(error.message() == "rank 1: no device is that small");
  }
}

TEST_CASE("shares and speeds of ranks are one for each, and positive") {
  for (std::vector<double> const& wrong : std::vector<std::vector<double>>{{1, 2}, {0}, {-1}}) {
    for (bool const speeds : {false, true}) {
      PipelineOptions options;
      (speeds ? options.rank_speeds : options.rank_shares) = wrong;
      CHECK(error_of([&] { agree_on_division({}, options, CostModel({}), {}, false); }).code() ==
            Errc::invalid_argument);
    }
  }
}

}  // namespace rank_division_test
