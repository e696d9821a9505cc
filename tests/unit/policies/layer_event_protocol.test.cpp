// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/policies/layer_event_protocol.hpp>

#include <roundpipe/core/error.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <iterator>
#include <map>
#include <set>
#include <vector>

namespace layer_event_protocol_test {

namespace {

using roundpipe::BlockEvent;
using roundpipe::BlockEventKind;
using roundpipe::BlockId;
using roundpipe::copies_parameters;
using roundpipe::Errc;
using roundpipe::EventProtocolOptions;
using roundpipe::LayerEventProtocol;
using roundpipe::test::error_of;
using enum roundpipe::BlockEventKind;

/// For each kind, the kinds that it waits for and their required ages.
using Edges = std::map<BlockEventKind, std::map<BlockEventKind, std::size_t>>;

constexpr BlockEventKind all_kinds[] = {upload, gradient_write, optimizer_step, parameter_copy};
static_assert(std::size(all_kinds) == roundpipe::block_event_kind_count);

LayerEventProtocol const pointer_swap;
LayerEventProtocol const single({.master_copies = 1});
LayerEventProtocol const two_gradients({.gradient_buffers = 2});
LayerEventProtocol const single_two_gradients({.master_copies = 1, .gradient_buffers = 2});
LayerEventProtocol const synchronous({.staleness = 0});

constexpr LayerEventProtocol const* all_modes[] = {
    &pointer_swap, &single, &two_gradients, &single_two_gradients, &synchronous};

/// All edges of one block; checks that no edge leads to another block.
Edges edges(LayerEventProtocol const& protocol) {
  Edges result;
  for (auto const kind : all_kinds) {
    if (kind == parameter_copy && !copies_parameters(protocol)) {
      continue;
    }
    for (std::size_t block = 0; block < 3; ++block) {
      std::map<BlockEventKind, std::size_t> kinds;
      for (auto const& event : protocol.before({BlockId(block), kind}, 3)) {
        CHECK(event.block == BlockId(block));
        CHECK(kinds.emplace(event.kind, event.age).second);
      }
      auto const [found, is_new] = result.try_emplace(kind, kinds);
      CHECK(found->second == kinds);
    }
  }
  return result;
}

}  // namespace

TEST_CASE(
    "with two master copies the step waits for its own iteration, and the second next iteration is "
    "the first to wait for the step") {
  CHECK(pointer_swap.staleness() == 1);
  CHECK(pointer_swap.master_copies() == 2);
  CHECK(pointer_swap.gradient_buffers() == 1);
  CHECK_FALSE(copies_parameters(pointer_swap));
  CHECK(edges(pointer_swap) == Edges{{upload, {{parameter_copy, 2}}},
                                     {gradient_write, {{optimizer_step, 0}}},
                                     {optimizer_step, {{gradient_write, 0}, {upload, 0}}}});
}

TEST_CASE("with one master copy, P copies are separate actions") {
  CHECK(single.master_copies() == 1);
  CHECK(copies_parameters(single));
  CHECK(edges(single) == Edges{{upload, {{parameter_copy, 0}}},
                               {gradient_write, {{optimizer_step, 0}}},
                               {optimizer_step, {{gradient_write, 0}, {parameter_copy, 0}}},
                               {parameter_copy, {{upload, 0}, {optimizer_step, 0}}}});
}

TEST_CASE("a second gradient buffer relaxes rule 4 by one iteration, and no other rule") {
  for (auto const& [one, two] :
       {std::pair{&pointer_swap, &two_gradients}, std::pair{&single, &single_two_gradients}}) {
    auto relaxed = edges(*one);
    relaxed[gradient_write] = {{optimizer_step, 2}};
    CHECK(edges(*two) == relaxed);
  }
}

TEST_CASE("with staleness 0 there is one of everything, whatever the options say") {
  for (std::size_t const copies : {1U, 2U}) {
    for (std::size_t const buffers : {1U, 2U}) {
      LayerEventProtocol const protocol(EventProtocolOptions{0, copies, buffers});
      CHECK(protocol.staleness() == 0);
      CHECK(protocol.master_copies() == 1);
      CHECK(protocol.gradient_buffers() == 1);
      CHECK(edges(protocol) == Edges{{upload, {{parameter_copy, 0}}},
                                     {gradient_write, {{optimizer_step, 0}}},
                                     {optimizer_step, {{gradient_write, 0}, {upload, 0}}}});
    }
  }
}

namespace {

/// An action of a run of several iterations, for one block.
struct Done {
  BlockEventKind kind;
  int iteration;  ///< For a P copy: the step whose result it copies.
};

/// The actions of \p iterations iterations in issue order, with two uploads and two gradient writes
/// in each. For each pair, tells whether the protocol's edges alone order the first before the
/// second.
class Run {
 public:
  Run(LayerEventProtocol const& protocol, int iterations) {
    auto const copies = copies_parameters(protocol);
    for (int t = 1; t <= iterations; ++t) {
      for (auto const kind : {upload, gradient_write, upload, gradient_write}) {
        add(protocol, {kind, t}, t, {kind});
      }
      if (copies && t > 1) {
        add(protocol, {parameter_copy, t - 1}, t, {parameter_copy});
      }
      add(protocol,
          {optimizer_step, t},
          t,
          copies ? std::set{optimizer_step} : std::set{optimizer_step, parameter_copy});
    }
  }

  /// Whether every action of the first kind and iteration precedes every action of the second.
  [[nodiscard]] bool ordered(Done first, Done second) const {
    bool any = false;
    for (std::size_t b = 0; b < actions_.size(); ++b) {
      for (std::size_t a = 0; a < actions_.size(); ++a) {
        if (is(a, first) && is(b, second)) {
          any = true;
          if (!actions_[b].before.contains(a)) {
            return false;
          }
        }
      }
    }
    return any;
  }

 private:
  struct Action {
    int iteration;  // of the data
    int issued;     // the iteration that issues the action
    std::set<BlockEventKind> events;
    std::set<std::size_t> before;
  };

  [[nodiscard]] bool is(std::size_t i, Done const& done) const {
    return actions_[i].events.contains(done.kind) && actions_[i].iteration == done.iteration;
  }

  void add(LayerEventProtocol const& protocol,
           Done done,
           int issued,
           std::set<BlockEventKind> const& events) {
    Action action{done.iteration, issued, events, {}};
    for (auto const& event : protocol.before({BlockId(0), done.kind}, 1)) {
      for (std::size_t i = 0; i < actions_.size(); ++i) {  // every action issued before
        auto const& earlier = actions_[i];
        if (earlier.events.contains(event.kind) &&
            earlier.issued + static_cast<int>(event.age) <= issued) {
          action.before.insert(i);
          action.before.insert(earlier.before.begin(), earlier.before.end());
        }
      }
    }
    actions_.push_back(action);
  }

  std::vector<Action> actions_;
};

}  // namespace

TEST_CASE("the five rules hold over iterations, by edges alone") {
  for (auto const* protocol : all_modes) {
    Run const run(*protocol, 8);
    auto const late = protocol->staleness();
    auto const copies = static_cast<int>(protocol->master_copies());
    auto const buffers = static_cast<int>(protocol->gradient_buffers());
    for (int t = 3; t <= 5; ++t) {
      CAPTURE(t);
      CAPTURE(late);
      CAPTURE(copies);
      CAPTURE(buffers);
      // P copy t overwrites the weights of step t - copies.
      CHECK(run.ordered({upload, t - copies + late + 1}, {parameter_copy, t}));  // 1
      CHECK(run.ordered({parameter_copy, t}, {upload, t + late + 1}));           // 2
      CHECK(run.ordered({gradient_write, t}, {optimizer_step, t}));              // 3
      CHECK(run.ordered({optimizer_step, t}, {gradient_write, t + buffers}));    // 4
      if (copies_parameters(*protocol)) {
        CHECK(run.ordered({optimizer_step, t}, {parameter_copy, t}));      // 5
        CHECK(run.ordered({parameter_copy, t}, {optimizer_step, t + 1}));  // 5
      }
    }
  }
}

TEST_CASE("with staleness 1 the next iteration's uploads do not wait for the step") {
  for (auto const* protocol : all_modes) {
    if (protocol->staleness() == 1) {
      Run const run(*protocol, 6);
      CHECK_FALSE(run.ordered({optimizer_step, 3}, {upload, 4}));
      CHECK(run.ordered({optimizer_step, 3}, {upload, 5}));
    }
  }
}

TEST_CASE("with two gradient buffers the next iteration's gradients do not wait for the step") {
  for (auto const* protocol : all_modes) {
    Run const run(*protocol, 6);
    CHECK(run.ordered({optimizer_step, 3}, {gradient_write, 4}) ==
          (protocol->gradient_buffers() == 1));
    CHECK(run.ordered({optimizer_step, 3}, {gradient_write, 5}));
  }
}

TEST_CASE("with staleness 0 the next iteration waits for the step") {
  Run const run(synchronous, 5);
  CHECK(run.ordered({optimizer_step, 3}, {upload, 4}));
  CHECK(run.ordered({optimizer_step, 3}, {gradient_write, 4}));
}

TEST_CASE("options out of their domain are refused") {
  for (auto const& options : {EventProtocolOptions{2, 1, 1},
                              EventProtocolOptions{-1, 1, 1},
                              EventProtocolOptions{1, 0, 1},
                              EventProtocolOptions{1, 3, 1},
                              EventProtocolOptions{1, 1, 0},
                              EventProtocolOptions{0, 1, 3}}) {
    CHECK(error_of([&] { return LayerEventProtocol(options); }).code() == Errc::invalid_argument);
  }
  CHECK(LayerEventProtocol{0}.staleness() == 0);
  CHECK(LayerEventProtocol{1}.master_copies() == 2);
  CHECK(error_of([] { return LayerEventProtocol{2}; }).code() == Errc::invalid_argument);
}

TEST_CASE("unknown blocks are refused") {
  CHECK(error_of([] { return pointer_swap.before({BlockId(3), upload}, 3); }).code() ==
        Errc::invalid_argument);
  CHECK(error_of([] { return pointer_swap.before({BlockId::none(), upload}, 3); }).code() ==
        Errc::invalid_argument);
}

}  // namespace layer_event_protocol_test
