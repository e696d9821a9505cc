// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/error.hpp>
#include <roundpipe/plan/layer_event_protocol.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <vector>

namespace {

using roundpipe::BlockEvent;
using roundpipe::BlockEventKind;
using roundpipe::BlockId;
using roundpipe::Errc;
using roundpipe::LayerEventProtocol;
using roundpipe::test::error_of;
using enum roundpipe::BlockEventKind;

using Edges = std::map<BlockEventKind, std::set<BlockEventKind>>;

constexpr BlockEventKind all_kinds[] = {
    upload, gradient_write, gradient_copy, optimizer_step, parameter_copy};
static_assert(std::size(all_kinds) == roundpipe::block_event_kind_count);

LayerEventProtocol const asynchronous;
LayerEventProtocol const without_copy({.gradient_copy = false});
LayerEventProtocol const synchronous({.staleness = 0});

/// All edges of one block; checks that they stay on it.
Edges edges(LayerEventProtocol const& protocol) {
  Edges result;
  for (auto const kind : all_kinds) {
    if (kind == gradient_copy && !protocol.copies_gradients()) {
      continue;
    }
    for (std::size_t block = 0; block < 3; ++block) {
      std::set<BlockEventKind> kinds;
      for (auto const& event : protocol.before({BlockId(block), kind}, 3)) {
        CHECK(event.block == BlockId(block));
        CHECK(kinds.insert(event.kind).second);
      }
      auto const [found, is_new] = result.try_emplace(kind, kinds);
      CHECK(found->second == kinds);
    }
  }
  return result;
}

}  // namespace

TEST_CASE("with staleness 1 and gradient copies these are all edges") {
  CHECK(asynchronous.staleness() == 1);
  CHECK(asynchronous.copies_gradients());
  CHECK(edges(asynchronous) == Edges{{upload, {parameter_copy}},
                                     {gradient_write, {gradient_copy}},
                                     {gradient_copy, {gradient_write, optimizer_step}},
                                     {optimizer_step, {gradient_copy, parameter_copy}},
                                     {parameter_copy, {upload, optimizer_step}}});
}

TEST_CASE("without gradient copies the optimizer reads what downloads write") {
  CHECK(without_copy.staleness() == 1);
  CHECK_FALSE(without_copy.copies_gradients());
  CHECK(edges(without_copy) == Edges{{upload, {parameter_copy}},
                                     {gradient_write, {optimizer_step}},
                                     {optimizer_step, {gradient_write, parameter_copy}},
                                     {parameter_copy, {upload, optimizer_step}}});
}

TEST_CASE("with staleness 0 there is no gradient copy, asked for or not") {
  for (auto const wanted : {false, true}) {
    LayerEventProtocol const protocol({.staleness = 0, .gradient_copy = wanted});
    CHECK(protocol.staleness() == 0);
    CHECK_FALSE(protocol.copies_gradients());
    CHECK(edges(protocol) == edges(without_copy));
  }
}

namespace {

/// An action of a run of several iterations, for one block.
struct Done {
  BlockEventKind kind;
  int iteration;
};

/// The actions of \p iterations iterations in issue order, two uploads and two gradient writes
/// each, and for each pair whether the first is before the second by the protocol's edges.
class Run {
 public:
  Run(LayerEventProtocol const& protocol, int iterations) {
    auto const late = protocol.staleness() == 1;
    for (int t = 1; t <= iterations; ++t) {
      for (auto const kind : {upload, gradient_write, upload, gradient_write}) {
        add(protocol, kind, t);
      }
      if (late && t > 1) {
        add(protocol, parameter_copy, t - 1);
      }
      if (protocol.copies_gradients()) {
        add(protocol, gradient_copy, t);
      }
      add(protocol, optimizer_step, t);
      if (!late) {
        add(protocol, parameter_copy, t);
      }
    }
  }

  /// Whether every action of the first kind and iteration precedes every one of the second.
  [[nodiscard]] bool ordered(Done first, Done second) const {
    bool any = false;
    for (std::size_t b = 0; b < actions_.size(); ++b) {
      for (std::size_t a = 0; a < actions_.size(); ++a) {
        if (is(a, first) && is(b, second)) {
          any = true;
          if (!before_[b].contains(a)) {
            return false;
          }
        }
      }
    }
    return any;
  }

 private:
  [[nodiscard]] bool is(std::size_t i, Done const& done) const {
    return actions_[i].kind == done.kind && actions_[i].iteration == done.iteration;
  }

  void add(LayerEventProtocol const& protocol, BlockEventKind kind, int iteration) {
    std::set<std::size_t> before;
    for (auto const& event : protocol.before({BlockId(0), kind}, 1)) {
      for (std::size_t i = 0; i < actions_.size(); ++i) {  // every one issued before
        if (actions_[i].kind == event.kind) {
          before.insert(i);
          before.insert(before_[i].begin(), before_[i].end());
        }
      }
    }
    actions_.push_back({kind, iteration});
    before_.push_back(before);
  }

  std::vector<Done> actions_;
  std::vector<std::set<std::size_t>> before_;
};

}  // namespace

TEST_CASE("the five rules hold over iterations, by edges alone") {
  for (auto const* protocol : {&asynchronous, &without_copy, &synchronous}) {
    Run const run(*protocol, 6);
    auto const late = protocol->staleness();
    auto const reader = protocol->copies_gradients() ? gradient_copy : optimizer_step;
    for (int t = 2; t <= 4; ++t) {
      CAPTURE(t);
      CHECK(run.ordered({upload, t + late}, {parameter_copy, t}));       // 1
      CHECK(run.ordered({parameter_copy, t}, {upload, t + late + 1}));   // 2
      CHECK(run.ordered({gradient_write, t}, {reader, t}));              // 3
      CHECK(run.ordered({reader, t}, {gradient_write, t + 1}));          // 4
      CHECK(run.ordered({optimizer_step, t}, {parameter_copy, t}));      // 5
      CHECK(run.ordered({parameter_copy, t}, {optimizer_step, t + 1}));  // 5
      CHECK(run.ordered({optimizer_step, t}, {optimizer_step, t + 1}));
      if (protocol->copies_gradients()) {
        CHECK(run.ordered({optimizer_step, t}, {gradient_copy, t + 1}));  // 5
        CHECK(run.ordered({gradient_copy, t}, {optimizer_step, t}));      // 5
      }
    }
  }
}

TEST_CASE("with staleness 1 the next iteration waits neither for the step nor with its gradients") {
  Run const run(asynchronous, 5);
  CHECK_FALSE(run.ordered({optimizer_step, 3}, {upload, 4}));
  CHECK_FALSE(run.ordered({optimizer_step, 3}, {gradient_write, 4}));
  CHECK(run.ordered({optimizer_step, 3}, {upload, 5}));
  Run const direct(without_copy, 5);
  CHECK_FALSE(direct.ordered({optimizer_step, 3}, {upload, 4}));
  CHECK(direct.ordered({optimizer_step, 3}, {gradient_write, 4}));
}

TEST_CASE("with staleness 0 the next iteration waits for the step") {
  Run const run(synchronous, 5);
  CHECK(run.ordered({optimizer_step, 3}, {upload, 4}));
  CHECK(run.ordered({optimizer_step, 3}, {gradient_write, 4}));
}

TEST_CASE("a staleness of neither 0 nor 1 is refused") {
  CHECK(error_of([] { return LayerEventProtocol({.staleness = 2}); }).code() ==
        Errc::invalid_argument);
  CHECK(LayerEventProtocol{0}.staleness() == 0);
  CHECK(LayerEventProtocol{1}.copies_gradients());
  CHECK(error_of([] { return LayerEventProtocol{2}; }).code() == Errc::invalid_argument);
  CHECK(error_of([] { return LayerEventProtocol({.staleness = -1}); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("blocks that the model has not, and copies that are not made, are refused") {
  CHECK(error_of([] { return asynchronous.before({BlockId(3), upload}, 3); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([] { return asynchronous.before({BlockId::none(), upload}, 3); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([] { return without_copy.before({BlockId(0), gradient_copy}, 3); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([] { return synchronous.before({BlockId(0), gradient_copy}, 3); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([] { return asynchronous.before({BlockId(0), gradient_copy}, 3); }).code() ==
        std::error_code{});
}
