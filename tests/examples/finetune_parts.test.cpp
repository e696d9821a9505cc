// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <common/pick.hpp>
#include <common/stop_request.hpp>
#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <finetune/curve.hpp>
#include <finetune/options.hpp>
#include <finetune/rate.hpp>
#include <finetune/step_times.hpp>
#include <set>
#include <string>
#include <vector>

namespace finetune_parts_test {
namespace {

using namespace finetune;
using roundpipe::Errc;
using roundpipe::test::error_of;

Options parse(std::vector<char const*> arguments) {
  std::vector<char const*> all{"finetune", "--model", "m", "--data", "d", "--output", "o"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return parse_options(static_cast<int>(all.size()), all.data()).value();
}

}  // namespace

TEST_CASE("the rate rises to the highest, and falls so that 0 would come behind the last step") {
  CHECK(rate_share("constant", 0, 10, 1) == 1);
  CHECK(rate_share("constant", 4, 10, 1) == 0.25);
  CHECK(rate_share("constant", 4, 10, 4) == 1);
  CHECK(rate_share("constant", 4, 10, 10) == 1);
  CHECK(rate_share("linear", 2, 10, 3) == 1);
  CHECK(rate_share("linear", 2, 10, 10) == doctest::Approx(1.0 / 8));
  CHECK(rate_share("linear", 2, 10, 11) == 0);
  CHECK(rate_share("cosine", 2, 10, 3) == 1);
  CHECK(rate_share("cosine", 2, 10, 7) == doctest::Approx(0.5));
  CHECK(rate_share("cosine", 2, 10, 99) == doctest::Approx(0));
  CHECK(rate_share("linear", 20, 10, 10) == 0.5);  // all of it is warm-up
}

TEST_CASE("a curve comes back from its JSON, and is refused where it is of other steps") {
  LossCurve curve{{3, 2, 1.5}, {{0, 3.5}, {2, 2.5}}};
  auto const back = LossCurve::from(curve.json(), 3, "file");
  CHECK(back.losses == curve.losses);
  CHECK(back.csv() == "step,loss,evaluation_loss\n0,,3.5\n1,3,\n2,2,2.5\n3,1.5,\n");
  CHECK(error_of([&] { (void)LossCurve::from(curve.json(), 2, "file"); }).code() == Errc::bad_file);
  CHECK(error_of([&] { (void)LossCurve::from({{"losses", "none"}}, 0, "file"); }).code() ==
        Errc::bad_file);
}

TEST_CASE("a picture holds the curve, whatever the losses are") {
  std::vector<double> const none;
  std::vector<double> const equal(5, 2.0);
  std::vector<double> many;
  for (int i = 0; i < 5000; ++i) {
    many.push_back(7 - i * 1e-3);
  }
  for (auto const& losses : {none, equal, many}) {
    LossCurve const curve{
        losses,
        losses.empty() ? std::vector<EvaluatedStep>{} : std::vector<EvaluatedStep>{{3, 2.5}}};
    auto const picture = curve.svg("A & B");
    CHECK(picture.starts_with("<svg "));
    CHECK(picture.ends_with("</svg>\n"));
    CHECK(picture.find("A &amp; B") != std::string::npos);
    CHECK(picture.find("nan") == std::string::npos);
    CHECK(picture.find("inf") == std::string::npos);
    CHECK(picture.size() < 40'000);
  }
}

TEST_CASE("the time of a step leaves out the first steps, and steps behind a pause") {
  using namespace std::chrono_literals;
  StepTimes times;
  auto now = StepTimes::Clock::now();
  CHECK(times.step_seconds() == 0);
  for (int step = 0; step < 4; ++step) {
    times.add_step(now += 10s);
  }
  CHECK(times.step_seconds() > 9);  // nothing better is known
  times.add_step(now += 2s);
  times.add_pause();
  times.add_step(now += 60s);
  times.add_step(now += 4s);
  CHECK(times.step_seconds() == doctest::Approx(3));
}

TEST_CASE("top-k and top-p leave the likeliest, of the right probabilities") {
  std::vector<float> const logits{1, 3, 2, 0};
  auto const drawn = [&](examples::Sampling const& sampling) {
    std::set<std::size_t> seen;
    for (int i = 0; i < 1000; ++i) {
      seen.insert(examples::pick(logits, sampling, i / 1000.0));
    }
    return seen;
  };
  CHECK(drawn({.temperature = 1}) == std::set<std::size_t>{0, 1, 2, 3});
  CHECK(drawn({.temperature = 1, .top_k = 2}) == std::set<std::size_t>{1, 2});
  CHECK(drawn({.temperature = 1, .top_k = 9}) == std::set<std::size_t>{0, 1, 2, 3});
  // Their probabilities are 0.64, 0.24, 0.09 and 0.03.
  CHECK(drawn({.temperature = 1, .top_p = 0.6}) == std::set<std::size_t>{1});
  CHECK(drawn({.temperature = 1, .top_p = 0.7}) == std::set<std::size_t>{1, 2});
  CHECK(drawn({.temperature = 1, .top_k = 2, .top_p = 0.72}) == std::set<std::size_t>{1});
  CHECK(examples::pick(logits, {.temperature = 1, .top_k = 2}, 0.73) == 1);
  CHECK(examples::pick(logits, {.temperature = 1, .top_k = 2}, 0.74) == 2);
}

TEST_CASE("the first signal is a request to stop, the second ends the program") {
  for (int const signal : {SIGINT, SIGTERM}) {
    {
      examples::StopRequest const stop;
      CHECK_FALSE(static_cast<bool>(stop));
      std::raise(signal);
      CHECK(static_cast<bool>(stop));
      CHECK((std::signal(SIGINT, SIG_DFL) == SIG_DFL));
      CHECK((std::signal(SIGTERM, SIG_DFL) == SIG_DFL));
    }
    examples::StopRequest const next;
    CHECK_FALSE(static_cast<bool>(next));
  }
  CHECK((std::signal(SIGINT, SIG_DFL) == SIG_DFL));  // once there is none
}

TEST_CASE("a cut that is given pins the rounds, too, and none leaves both open") {
  CHECK(parse({"--steps", "1"}).chooses_cut());
  CHECK(parse({"--steps", "1", "--rounds", "2"}).chooses_cut());
  CHECK_FALSE(parse({"--steps", "1", "--micro-batches", "2"}).chooses_cut());
  CHECK(parse({"--epochs", "0.5", "--no-shuffle"}).shuffles == false);
  CHECK(parse({"--steps", "3", "--data", "e"}).data == std::vector<std::string>{"d", "e"});
  for (std::vector<char const*> const& wrong : std::vector<std::vector<char const*>>{
           {},
           {"--steps", "1", "--epochs", "1"},
           {"--steps", "-1"},
           {"--steps", "1", "--beta1", "1"},
           {"--steps", "1", "--lora-alpha", "4"},
           {"--steps", "1", "--merge"},
           {"--steps", "1", "--lora", "2", "--freeze", "x"},
           {"--steps", "1", "--batch", "6", "--micro-batches", "4"},
           {"--steps", "1", "--json", "f", "--trace", "f"},
           {"--steps", "1", "--device-memory", "0"}}) {
    CHECK(error_of([&] { (void)parse(wrong); }).code() == Errc::invalid_argument);
  }
}

}  // namespace finetune_parts_test
