// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/partition/partitioner.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

namespace partitioner_test {

namespace {

using roundpipe::Errc;
using roundpipe::Error;
using roundpipe::LayerCost;
using roundpipe::LayerRange;
using roundpipe::Partition;
using roundpipe::Partitioner;
using roundpipe::PartitionProblem;
using roundpipe::StageDirection;

/// The score of a partition.
struct Score {
  double objective = std::numeric_limits<double>::infinity();
  double t_max = 0;
  std::size_t fused_first = 0;
  friend bool operator==(Score const&, Score const&) = default;
};

/// All ways to cut the layers [0, count) into stages, in layer order: one bit for each possible
/// cut.
std::vector<std::vector<LayerRange>> compositions(std::size_t count) {
  if (count == 0) {
    return {{}};
  }
  std::vector<std::vector<LayerRange>> result;
  for (std::uint32_t cuts = 0; cuts < (1U << (count - 1)); ++cuts) {
    std::vector<LayerRange> stages{{0, 1}};
    for (std::size_t layer = 1; layer < count; ++layer) {
      if ((cuts >> (layer - 1) & 1U) != 0) {
        stages.push_back({layer, 0});
      }
      ++stages.back().count;
    }
    result.push_back(stages);
  }
  return result;
}

/// The time of the slowest of \p stages, or infinity when a stage does not fit.
double slowest(PartitionProblem const& problem,
               StageDirection direction,
               std::vector<LayerRange> const& stages) {
  double result = 0;
  for (auto const stage : stages) {
    if (problem.fits && !problem.fits(direction, stage)) {
      return std::numeric_limits<double>::infinity();
    }
    double sum = 0;
    for (auto layer = stage.first; layer < stage.end(); ++layer) {
      auto const& cost = problem.costs[layer];
      if (direction == StageDirection::forward) {
        sum += cost.forward_s;
      } else {
        auto const fused = stage.end() == problem.costs.size();
        sum += (fused || !cost.recompute_s ? cost.forward_s : *cost.recompute_s) + cost.backward_s;
      }
    }
    result = std::max(result, sum);
  }
  return result;
}

/// The best score, found by trying everything: smallest objective, then smallest t_max, then
/// earliest fused stage. Costs that are multiples of a power of two make the score exact.
Score brute_force(PartitionProblem const& problem) {
  auto const layers = problem.costs.size();
  auto const n = static_cast<double>(problem.devices);
  Score best;
  for (std::size_t fused = 0; fused < layers; ++fused) {
    auto const fused_seconds =
        slowest(problem, StageDirection::backward, {{fused, layers - fused}});
    std::map<double, double> forwards;  // by number of stages: the slowest stage's time
    std::map<double, double> backwards;
    for (auto const& stages : compositions(fused)) {
      auto const count = static_cast<double>(stages.size());
      auto const keep_least = [&](std::map<double, double>& all, StageDirection direction) {
        auto const seconds = slowest(problem, direction, stages);
        auto const [place, is_new] = all.emplace(count, seconds);
        place->second = std::min(place->second, seconds);
      };
      keep_least(forwards, StageDirection::forward);
      keep_least(backwards, StageDirection::backward);
    }
    for (auto const& [forward_stages, forward_seconds] : forwards) {
      for (auto const& [backward_stages, backward_seconds] : backwards) {
        auto const t = std::max({fused_seconds, forward_seconds, backward_seconds});
        if (!std::isfinite(t)) {
          continue;
        }
        auto const stages = forward_stages + 1 + backward_stages;
        auto const value =
            (static_cast<double>(problem.micro_batches_per_call) * stages + n * (n - 1)) * t;
        if (std::tie(value, t, fused) < std::tie(best.objective, best.t_max, best.fused_first)) {
          best = {value, t, fused};
        }
      }
    }
  }
  return best;
}

/// Checks that the stages are in execution order, cover the model and fit.
void check_legal(PartitionProblem const& problem, Partition const& partition) {
  REQUIRE_FALSE(partition.backward.empty());
  std::size_t next = 0;
  for (auto const stage : partition.forward) {
    CHECK(stage.first == next);
    CHECK(stage.count > 0);
    CHECK((!problem.fits || problem.fits(StageDirection::forward, stage)));
    next = stage.end();
  }
  CHECK(next == partition.backward.front().first);
  next = problem.costs.size();
  for (auto const stage : partition.backward) {
    CHECK(stage.end() == next);
    CHECK(stage.count > 0);
    CHECK((!problem.fits || problem.fits(StageDirection::backward, stage)));
    next = stage.first;
  }
  CHECK(next == 0);
}

Score score(PartitionProblem const& problem, Partition const& partition) {
  return {roundpipe::objective(problem, partition),
          roundpipe::slowest_stage_seconds(problem.costs, partition),
          partition.backward.front().first};
}

std::error_code code_of(PartitionProblem const& problem) {
  return roundpipe::test::error_of([&] { (void)Partitioner{}.partition(problem); }).code();
}

using Random = std::mt19937_64;

std::size_t draw(Random& random, std::size_t low, std::size_t high) {
  return std::uniform_int_distribution<std::size_t>(low, high)(random);
}

/// A problem of up to ten layers whose costs are multiples of 1/8. Some layers cost nothing; for
/// some, recomputing takes longer or shorter.
PartitionProblem random_problem(Random& random) {
  PartitionProblem problem;
  auto const most = draw(random, 0, 24);  // 0: all layers cost nothing
  auto const recomputes = draw(random, 0, 1) == 1;
  problem.costs.resize(draw(random, 1, 10));
  for (auto& cost : problem.costs) {
    auto const seconds = [&](std::size_t longest) {
      return static_cast<double>(draw(random, 0, longest)) / 8;
    };
    cost = {seconds(most), seconds(2 * most)};
    if (recomputes && draw(random, 0, 3) > 0) {
      cost.recompute_s = seconds(2 * most);
    }
    if (draw(random, 0, 9) == 0) {
      cost = {};
    }
  }
  problem.devices = draw(random, 1, 4);
  problem.micro_batches_per_call = draw(random, 1, 12);
  return problem;
}

}  // namespace

TEST_CASE("the partition is as good as the best of all") {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    CAPTURE(i);
    auto const problem = random_problem(random);
    auto const partition = Partitioner{}.partition(problem);
    check_legal(problem, partition);
    auto const best = brute_force(problem);
    if (best.objective > 0) {
      REQUIRE(score(problem, partition) == best);
    } else {
      REQUIRE(roundpipe::objective(problem, partition) == 0);
    }
  }
}

TEST_CASE("under memory limits the partition is as good as the best of all that fit") {
  Random random(2);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    CAPTURE(i);
    auto problem = random_problem(random);
    std::vector<std::size_t> bytes(problem.costs.size());
    std::ranges::generate(bytes, [&] { return draw(random, 1, 8); });
    auto const budget = draw(random, 7, 24);
    problem.fits = [bytes, budget](StageDirection direction, LayerRange stage) {
      std::size_t sum = 0;
      for (auto layer = stage.first; layer < stage.end(); ++layer) {
        sum += bytes[layer] * (direction == StageDirection::backward ? 2 : 1);
      }
      return sum <= budget;
    };
    auto const best = brute_force(problem);
    if (std::isinf(best.objective)) {
      CHECK(code_of(problem) == Errc::over_budget);
      ++refused;
      continue;
    }
    auto const partition = Partitioner{}.partition(problem);
    check_legal(problem, partition);
    if (best.objective > 0) {
      REQUIRE(score(problem, partition) == best);
    }
  }
  CHECK(refused > 100);
  CHECK(refused < 1900);
}

TEST_CASE("limits need not be monotone, and each stage is asked about at most once") {
  Random random(3);
  for (int i = 0; i < 1000; ++i) {
    CAPTURE(i);
    auto problem = random_problem(random);
    auto const salt = random();
    auto const fits = [salt](StageDirection direction, LayerRange stage) {
      Random hash(salt + 1000 * stage.first + stage.count +
                  (direction == StageDirection::forward ? 0 : 500));
      return hash() % 4 != 0;
    };
    problem.fits = fits;
    auto const best = brute_force(problem);
    std::map<std::tuple<StageDirection, std::size_t, std::size_t>, int> asked;
    problem.fits = [&](StageDirection direction, LayerRange stage) {
      ++asked[{direction, stage.first, stage.count}];
      return fits(direction, stage);
    };
    if (std::isinf(best.objective)) {
      CHECK(code_of(problem) == Errc::over_budget);
    } else {
      auto const partition = Partitioner{}.partition(problem);
      if (best.objective > 0) {
        REQUIRE(score(problem, partition) == best);
      }
    }
    CHECK(std::ranges::all_of(asked, [](auto const& entry) { return entry.second == 1; }));
  }
}

TEST_CASE("with costs that round, the partition is as good as the best up to rounding") {
  Random random(4);
  std::uniform_real_distribution<double> seconds(0, 0.02);
  for (int i = 0; i < 200; ++i) {
    auto problem = random_problem(random);
    for (auto& cost : problem.costs) {
      cost = {seconds(random), seconds(random)};
    }
    auto const partition = Partitioner{}.partition(problem);
    check_legal(problem, partition);
    auto const found = roundpipe::objective(problem, partition);
    CHECK(found <= brute_force(problem).objective * (1 + 1e-12));
  }
}

TEST_CASE("equal layers are cut as calculated by hand") {
  // Six layers of 1 + 2 s and two devices. With t_max = 3, backward stages have one layer and
  // forward stages at most three. The fused stage holds layer 5; the shorter forward stage comes
  // first.
  PartitionProblem problem{.costs = std::vector<LayerCost>(6, {1, 2}),
                           .devices = 2,
                           .micro_batches_per_call = 4,
                           .fits = {}};
  auto const partition = Partitioner{}.partition(problem);
  CHECK(partition.forward == std::vector<LayerRange>{{0, 2}, {2, 3}});
  CHECK(partition.backward ==
        std::vector<LayerRange>{{5, 1}, {4, 1}, {3, 1}, {2, 1}, {1, 1}, {0, 1}});
  CHECK(roundpipe::objective(problem, partition) == (4 * 8 + 2) * 3);
}

TEST_CASE("of equally good partitions the most even one wins") {
  Random random(8);
  auto const squares = [](PartitionProblem const& problem,
                          StageDirection direction,
                          std::vector<LayerRange> const& stages) {
    double sum = 0;
    for (auto const stage : stages) {
      auto const s = roundpipe::stage_seconds(problem.costs, direction, stage);
      sum += s * s;
    }
    return sum;
  };
  for (int i = 0; i < 300; ++i) {
    auto const problem = random_problem(random);
    auto const partition = Partitioner{}.partition(problem);
    auto const t_max = roundpipe::slowest_stage_seconds(problem.costs, partition);
    auto const layers = partition.backward.front().first;
    auto const backward =
        std::vector<LayerRange>(partition.backward.begin() + 1, partition.backward.end());
    for (auto const& stages : compositions(layers)) {
      if (stages.size() == partition.forward.size() &&
          slowest(problem, StageDirection::forward, stages) <= t_max) {
        CHECK(squares(problem, StageDirection::forward, partition.forward) <=
              squares(problem, StageDirection::forward, stages));
      }
      if (stages.size() == backward.size() &&
          slowest(problem, StageDirection::backward, stages) <= t_max) {
        CHECK(squares(problem, StageDirection::backward, backward) <=
              squares(problem, StageDirection::backward, stages));
      }
    }
  }
}

TEST_CASE("the partitions of the RoundPipe paper's bubble study are found") {
  // arXiv:2604.27085, figure 15: 8 devices, 16 micro-batches; Qwen3 1.7B and Llama 3.1 8B.
  std::vector<LayerCost> costs(28, {7.429, 15.831});
  costs.push_back({22.0655, 43.707});
  auto const counts = [&] {
    auto const partition = Partitioner{}.partition(
        {.costs = costs, .devices = 8, .micro_batches_per_call = 16, .fits = {}});
    std::pair<std::vector<std::size_t>, std::vector<std::size_t>> result;
    std::ranges::transform(partition.forward, std::back_inserter(result.first), &LayerRange::count);
    std::ranges::transform(
        partition.backward, std::back_inserter(result.second), &LayerRange::count);
    return result;
  };
  using Counts = std::vector<std::size_t>;
  CHECK(counts().first == Counts{7, 7, 7, 7});
  CHECK(counts().second == Counts{1, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2});
  costs.assign(32, {18.50370313, 41.20659375});
  costs.push_back({37.2255, 74.501});
  CHECK(counts().first == Counts{5, 5, 5, 5, 6, 6});
  auto twos = Counts(17, 2);
  twos[0] = 1;
  CHECK(counts().second == twos);
}

TEST_CASE("an expensive head fills the fused stage alone") {
  std::vector<LayerCost> costs(8, {1, 2});
  costs.push_back({2, 4});
  PartitionProblem const problem{
      .costs = costs, .devices = 4, .micro_batches_per_call = 8, .fits = {}};
  auto const partition = Partitioner{}.partition(problem);
  CHECK(partition.backward.front() == LayerRange{8, 1});
  CHECK(partition.backward.size() == 5);  // two layers of 3 s beside the head's 6 s
  CHECK(partition.forward.size() == 2);
}

TEST_CASE("the fused stage is filled before the others") {
  // Without limits and with layers that cost nothing, the fused stage may begin early.
  PartitionProblem const problem{.costs = {{4, 4}, {0, 0}, {0, 0}, {4, 4}},
                                 .devices = 4,
                                 .micro_batches_per_call = 2,
                                 .fits = {}};
  auto const partition = Partitioner{}.partition(problem);
  CHECK(partition.backward.front() == LayerRange{1, 3});
  CHECK(partition.forward == std::vector<LayerRange>{{0, 1}});
}

TEST_CASE("one layer is one fused stage") {
  PartitionProblem const problem{
      .costs = {{1, 2}}, .devices = 4, .micro_batches_per_call = 8, .fits = {}};
  auto const partition = Partitioner{}.partition(problem);
  CHECK(partition.forward.empty());
  CHECK(partition.backward == std::vector<LayerRange>{{0, 1}});
  CHECK(roundpipe::objective(problem, partition) == (8 + 12) * 3);
}

TEST_CASE("a model that costs nothing is one stage") {
  PartitionProblem const problem{
      .costs = std::vector<LayerCost>(5), .devices = 3, .micro_batches_per_call = 2, .fits = {}};
  auto const partition = Partitioner{}.partition(problem);
  CHECK(partition.forward.empty());
  CHECK(partition.backward == std::vector<LayerRange>{{0, 5}});
}

TEST_CASE("one device gets the fewest stages per second, many devices short ones") {
  PartitionProblem problem{.costs = std::vector<LayerCost>(12, {1, 2}),
                           .devices = 1,
                           .micro_batches_per_call = 1,
                           .fits = {}};
  CHECK(Partitioner{}.partition(problem).size() == 1);
  problem.devices = 8;
  CHECK(Partitioner{}.partition(problem).size() > 8);
}

TEST_CASE("uneven cuts beat equal ones") {
  // 28 equal layers, an embedding without cost, and a head worth three layers.
  std::vector<LayerCost> costs{{0, 0.1}};
  costs.insert(costs.end(), 28, {7, 16});
  costs.push_back({20, 40});
  PartitionProblem const problem{
      .costs = costs, .devices = 8, .micro_batches_per_call = 16, .fits = {}};
  auto const best = roundpipe::objective(problem, Partitioner{}.partition(problem));
  for (std::size_t layers = 1; layers <= costs.size(); ++layers) {
    Partition uniform;  // equal stages in both directions
    for (auto end = costs.size(); end > 0; end -= std::min(end, layers)) {
      auto const count = std::min(end, layers);
      uniform.backward.push_back({end - count, count});
      if (end != costs.size()) {
        uniform.forward.insert(uniform.forward.begin(), {end - count, count});
      }
    }
    check_legal(problem, uniform);
    CHECK(best < roundpipe::objective(problem, uniform));
  }
}

TEST_CASE("equal problems give equal partitions") {
  Random random(5);
  for (int i = 0; i < 50; ++i) {
    auto const problem = random_problem(random);
    auto const copy = problem;
    CHECK(Partitioner{}.partition(problem) == Partitioner{}.partition(copy));
  }
}

TEST_CASE("scaling all costs by a power of two changes no stage") {
  Random random(6);
  for (int i = 0; i < 50; ++i) {
    auto problem = random_problem(random);
    auto const partition = Partitioner{}.partition(problem);
    for (auto& cost : problem.costs) {
      cost.forward_s *= 0x1p-700;
      cost.backward_s *= 0x1p-700;
      if (cost.recompute_s) {
        *cost.recompute_s *= 0x1p-700;
      }
    }
    CHECK(Partitioner{}.partition(problem) == partition);
  }
}

TEST_CASE("a large heterogeneous model is cut, with and without limits") {
  Random random(7);
  std::uniform_real_distribution<double> seconds(0.001, 0.02);
  PartitionProblem problem{.costs = {}, .devices = 8, .micro_batches_per_call = 32, .fits = {}};
  for (int layer = 0; layer < 100; ++layer) {
    problem.costs.push_back({seconds(random), seconds(random)});
  }
  auto const free = Partitioner{}.partition(problem);
  check_legal(problem, free);
  problem.fits = [](StageDirection direction, LayerRange stage) {
    return stage.count <= (direction == StageDirection::forward ? 5U : 3U);
  };
  auto const limited = Partitioner{}.partition(problem);
  check_legal(problem, limited);
  CHECK(roundpipe::objective(problem, free) <= roundpipe::objective(problem, limited));
}

TEST_CASE("a model that cannot fit is refused, and the error names the layer that is too large") {
  PartitionProblem problem{.costs = std::vector<LayerCost>(4, {1, 1}),
                           .devices = 2,
                           .micro_batches_per_call = 2,
                           .fits = {}};
  auto const message = [&] {
    auto const error = roundpipe::test::error_of([&] { (void)Partitioner{}.partition(problem); });
    CHECK(error.code() == Errc::over_budget);
    CHECK(error.code() == std::errc::not_enough_memory);
    return error.message();
  };
  problem.fits = [](StageDirection direction, LayerRange stage) {
    return !(direction == StageDirection::backward && stage.contains(2));
  };
  CHECK(message().find("layer 2 alone does not fit into a device as a backward stage; a larger "
                       "device budget or smaller micro-batches would help") != std::string::npos);
  problem.fits = [](StageDirection direction, LayerRange stage) {
    return direction == StageDirection::forward ? !stage.contains(1) : stage.count == 1;
  };
  CHECK(message().find("layer 1 alone does not fit into a device as a forward stage") !=
        std::string::npos);
}

TEST_CASE("an invalid problem is refused") {
  PartitionProblem const good{
      .costs = {{1, 1}, {1, 1}}, .devices = 2, .micro_batches_per_call = 2, .fits = {}};
  CHECK_FALSE(code_of(good));
  auto bad = good;
  bad.costs.clear();
  CHECK(code_of(bad) == Errc::invalid_argument);
  bad = good;
  bad.devices = 0;
  CHECK(code_of(bad) == Errc::invalid_argument);
  bad = good;
  bad.micro_batches_per_call = 0;
  CHECK(code_of(bad) == Errc::invalid_argument);
  for (auto const cost :
       {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    bad = good;
    bad.costs[1].forward_s = cost;
    CHECK(code_of(bad) == Errc::invalid_argument);
    bad = good;
    bad.costs[0].backward_s = cost;
    CHECK(code_of(bad) == Errc::invalid_argument);
    bad = good;
    bad.costs[0].recompute_s = cost;
    CHECK(code_of(bad) == Errc::invalid_argument);
  }
}

TEST_CASE("stage times sum the forward, or forward and backward") {
  std::vector<LayerCost> const costs{{1, 2}, {3, 4}, {5, 6}};
  using roundpipe::stage_seconds;
  CHECK(stage_seconds(costs, StageDirection::forward, {0, 3}) == 9);
  CHECK(stage_seconds(costs, StageDirection::backward, {1, 2}) == 18);
  CHECK(stage_seconds(costs, StageDirection::backward, {3, 0}) == 0);
  CHECK_THROWS_AS((void)stage_seconds(costs, StageDirection::forward, {2, 2}), Error);
  CHECK_THROWS_AS((void)stage_seconds(costs, StageDirection::forward, {4, 0}), Error);
  Partition const partition{.forward = {{0, 2}}, .backward = {{2, 1}, {0, 2}}};
  CHECK(roundpipe::slowest_stage_seconds(costs, partition) == 11);
}

}  // namespace partitioner_test
