// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/graph/verify.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/schedule/round_robin_schedule.hpp>
#include <support/error_of.hpp>
#include <support/hand_made_graph.hpp>
#include <support/own_policies.hpp>
#include <support/training_graphs.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace verify_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

using enum BlockEventKind;

/// An upload of block 0, then a download of its gradient: the parts of a call that concern the five
/// rules.
struct Parts {
  Made up{ActionKind::upload_parameters, LaneKind::parameter_up, 0};
  Made down{ActionKind::download_gradients, LaneKind::gradient_down, 0};
  Made step{ActionKind::optimizer_step, LaneKind::optimizer};
  Made copy{ActionKind::copy_parameters, LaneKind::parameter_copy};

  Parts() {
    up.reads(of_block(BufferKind::master));
    down.writes(of_block(BufferKind::gradient));
    step.reads(of_block(BufferKind::gradient)).writes(of_block(BufferKind::optimizer_copy));
    copy.reads(of_block(BufferKind::optimizer_copy)).writes(of_block(BufferKind::master));
  }
};

/// These parts as graphs, with staleness 1 and P copies, or synchronous.
struct Graphs {
  ActionGraph call;
  ActionGraph step;

  Graphs(Parts parts, int staleness) {
    call = graph_of({parts.up, parts.down});
    call.block_events[{BlockId(0), upload}] = {ActionId(0)};
    call.block_events[{BlockId(0), gradient_write}] = {ActionId(1)};
    if (staleness == 1) {
      step = graph_of({parts.copy, parts.step}, GraphRole::step);
      step.block_events[{BlockId(0), parameter_copy}] = {ActionId(0)};
      step.block_events[{BlockId(0), optimizer_step}] = {ActionId(1)};
    } else {
      parts.step.writes(of_block(BufferKind::master));
      step = graph_of({parts.step}, GraphRole::step);
      step.block_events[{BlockId(0), parameter_copy}] = {ActionId(0)};
      step.block_events[{BlockId(0), optimizer_step}] = {ActionId(0)};
    }
    call.staleness = step.staleness = staleness;
  }

  [[nodiscard]] std::vector<Violation> check() const {
    return verify(GraphSequence(2).add(call).add(step).add(call).add(step).add(call).add(step));
  }
};

/// All edges of the rules, with P copies.
Parts safe_parts() {
  Parts parts;
  parts.up.after(parameter_copy);
  parts.down.after(optimizer_step).after({0});
  parts.step.after(gradient_write).after({0});
  parts.copy.after(upload).after(optimizer_step);
  return parts;
}

/// The first violation, after checking that every violation breaks \p rule.
Violation only(std::vector<Violation> const& violations, Rule rule) {
  REQUIRE_FALSE(violations.empty());
  for (auto const& violation : violations) {
    CHECK(violation.rule == rule);
    CHECK(violation.text.starts_with(name_of(rule)));
  }
  return violations.front();
}

bool names(Violation const& violation, std::string const& what) {
  INFO(violation.text);
  return violation.text.find(what) != std::string::npos;
}

Ring const activations{BufferKind::activations_in, DeviceId(0), 0};

}  // namespace

TEST_CASE("with the edges of all five rules nothing is violated") {
  CHECK(Graphs(safe_parts(), 1).check().empty());
}

TEST_CASE("rule 1: a P copy that does not wait for uploads is reported") {
  auto parts = safe_parts();
  parts.copy.action.block_waits = {{BlockId(0), optimizer_step}};
  parts.down.action.waits.clear();  // otherwise gradients, and thus steps, come after uploads
  auto const violation = only(Graphs(parts, 1).check(), Rule::upload_before_copy);
  CHECK(names(violation, "graph 0: upload parameters, device 0"));
  CHECK(names(violation, "graph 1: copy parameters of block 0"));
}

TEST_CASE("rule 2: an upload that does not wait for the P copy is reported") {
  auto parts = safe_parts();
  parts.up.action.block_waits.clear();
  auto const violation = only(Graphs(parts, 1).check(), Rule::copy_before_upload);
  CHECK(names(violation, "copy parameters of block 0"));
  CHECK(names(violation, "upload parameters, device 0"));
}

TEST_CASE("rule 3: a step that does not wait for the gradient is reported") {
  auto parts = safe_parts();
  parts.step.action.block_waits.clear();
  auto const violation = only(Graphs(parts, 1).check(), Rule::gradient_before_reader);
  CHECK(names(violation, "graph 0: download gradients, device 0"));
  CHECK(names(violation, "graph 1: optimizer step of block 0"));
}

TEST_CASE("rule 4: a gradient that does not wait for its reader is reported") {
  auto parts = safe_parts();
  parts.down.action.block_waits.clear();
  auto const violation = only(Graphs(parts, 1).check(), Rule::reader_before_gradient);
  CHECK(names(violation, "graph 1: optimizer step of block 0"));
  CHECK(names(violation, "graph 2: download gradients, device 0"));
}

TEST_CASE("rule 5: a P copy before the step that it copies is reported") {
  auto parts = safe_parts();
  parts.copy.action.block_waits = {{BlockId(0), upload}};
  auto const violation = only(Graphs(parts, 1).check(), Rule::copy_between_steps);
  CHECK(names(violation, "graph 1: optimizer step of block 0"));
  CHECK(names(violation, "graph 3: copy parameters of block 0"));
}

TEST_CASE("rule 5: a step that does not wait for the P copy of its source is reported") {
  auto parts = safe_parts();
  parts.step.action.waits.clear();
  auto const violation = only(Graphs(parts, 1).check(), Rule::copy_between_steps);
  CHECK(names(violation, "copy parameters of block 0"));
  CHECK(names(violation, "may come after"));
}

TEST_CASE("when steps write the master copy, rules 1 and 2 bind the step") {
  auto parts = safe_parts();
  parts.step.action.waits.clear();
  CHECK(Graphs(parts, 0).check().empty());
  auto early = parts;
  early.up.action.block_waits.clear();
  only(Graphs(early, 0).check(), Rule::copy_before_upload);
  auto late = parts;
  late.down.action.waits.clear();
  auto const violation = only(Graphs(late, 0).check(), Rule::upload_before_copy);
  CHECK(names(violation, "upload parameters"));
  CHECK(names(violation, "optimizer step of block 0"));
}

TEST_CASE("rules 2 and 6: a gather comes after its step, and uploads after the gather") {
  auto const check = [](bool gather_waits, bool upload_waits) {
    auto parts = safe_parts();
    parts.step.action.waits.clear();
    parts.up.reads(of_block(BufferKind::gathered));
    Graphs graphs(parts, 0);
    Made gather(ActionKind::gather_weights, LaneKind::gather);
    gather.reads(of_block(BufferKind::master)).writes(of_block(BufferKind::gathered));
    if (gather_waits) {
      gather.after({0});
    }
    graphs.step.actions.push_back(gather.action);
    if (upload_waits) {
      graphs.step.block_events[{BlockId(0), parameter_copy}].push_back(ActionId(1));
    }
    return graphs.check();
  };
  CHECK(check(true, true).empty());
  bool named = false;  // beside rule 1: such a gather may overtake earlier uploads, too
  for (auto const& violation : check(false, true)) {
    named = named || (violation.rule == Rule::share_before_gather &&
                      names(violation, "optimizer step of block 0 may come after graph 1: gather"));
  }
  CHECK(named);
  auto const violations = check(true, false);
  REQUIRE_FALSE(violations.empty());
  CHECK(violations.front().rule == Rule::copy_before_upload);
  CHECK(names(violations.front(), "graph 1: gather weights of block 0 may come after"));
  CHECK(names(violations.front(), "graph 2: upload parameters, device 0"));
}

TEST_CASE("a read before or during the write of another buffer is reported") {
  Ring const boundary{BufferKind::checkpoint, DeviceId::none(), 0};
  auto const sequence = [&](bool waits) {
    Made write(ActionKind::download_activation, LaneKind::activation_down, 0);
    Made read(ActionKind::upload_activation, LaneKind::activation_up, 1);
    write.writes({boundary, 0}).after_users({boundary, 0});
    read.reads({boundary, 0});
    if (waits) {
      read.after({0});
    }
    auto graph = graph_of({write, read});
    add_ring(graph, boundary, 2, {{ActionId(0), ActionId(1)}});
    return verify(graph);
  };
  CHECK(sequence(true).empty());
  auto const violation = only(sequence(false), Rule::data);
  CHECK(names(violation, "graph 0: download activation, device 0 may come after"));
  CHECK(names(violation, "upload activation, device 1"));
}

TEST_CASE("recomputations need no gradient, but a backward that does not wait for it is reported") {
  auto const sequence = [&](bool waits) {
    Made up(ActionKind::upload_activation, LaneKind::activation_up, 0);
    Made gradient(ActionKind::upload_gradient, LaneKind::parameter_up, 0);  // on any other lane
    Made recompute(ActionKind::recompute, LaneKind::compute, 0);
    Made backward(ActionKind::backward, LaneKind::compute, 0);
    up.writes({activations, 0});
    gradient.writes({activations, 0});
    recompute.reads({activations, 0}).after({0});
    backward.reads({activations, 0});
    if (waits) {
      backward.after({1});
    }
    auto graph = graph_of({up, gradient, recompute, backward}, GraphRole::call, 1);
    add_ring(graph, activations, 1, {{ActionId(0), ActionId(1), ActionId(2), ActionId(3)}});
    return verify(GraphSequence(1).add(graph));
  };
  CHECK(sequence(true).empty());
  auto const violation = only(sequence(false), Rule::data);
  CHECK(names(violation, "upload gradient, device 0"));
  CHECK(names(violation, "backward, device 0"));
}

TEST_CASE("a write to an entry whose former content is in use is reported") {
  auto const sequence = [&](bool waits) {
    Made up(ActionKind::upload_activation, LaneKind::activation_up, 0);
    Made compute(ActionKind::forward, LaneKind::compute, 0);
    up.writes({activations, 0});
    if (waits) {
      up.after_users({activations, 0});
    }
    compute.reads({activations, 0}).after({0});
    auto graph = graph_of({up, compute}, GraphRole::call, 1);
    add_ring(graph, activations, 1, {{ActionId(0), ActionId(1)}});
    return verify(graph);
  };
  CHECK(sequence(true).empty());
  auto const violation = only(sequence(false), Rule::buffer_reuse);
  CHECK(names(violation, "graph 0: forward, device 0"));
  CHECK(names(violation, "graph 1: upload activation, device 0"));
}

TEST_CASE(
    "chunks of one content need no order, and layers need only the order of their own blocks") {
  Ring const ring{BufferKind::parameters, DeviceId(0), 0};
  Made first(ActionKind::upload_parameters, LaneKind::parameter_up, 0);
  Made second(ActionKind::upload_parameters, LaneKind::activation_up, 0);  // on any other lane
  Made compute(ActionKind::forward, LaneKind::compute, 0);
  first.writes({ring, 0}).after_users({ring, 0}).action.pieces = {{BlockUseId(0), 0, 0, 256}};
  second.writes({ring, 0}).after_users({ring, 0}).action.pieces = {{BlockUseId(1), 0, 0, 256}};
  compute.reads({ring, 0}).after({0});  // of use 0
  auto graph = graph_of({first, second, compute}, GraphRole::call, 1);
  add_ring(graph, ring, 1, {{ActionId(0), ActionId(1), ActionId(2)}});
  CHECK(verify(GraphSequence(1).add(graph)).empty());
  graph.actions[2].uses = {BlockUseId(1)};
  auto const violations = verify(GraphSequence(1).add(graph));
  CHECK(names(only(violations, Rule::data), "upload parameters"));
}

TEST_CASE("an activation copy that may queue behind a gated chunk is reported") {
  auto const sequence = [](bool gated, bool waits) {
    Made copy(ActionKind::upload_activation, LaneKind::activation_up, 0);
    Made chunk(ActionKind::upload_parameters, LaneKind::parameter_up, 0);
    copy.in_slot(0, 0);
    chunk.gated(0, 0).action.gated = gated;
    if (waits) {
      chunk.after({0});
    }
    return verify(GraphSequence(1).add(graph_of({copy, chunk}, GraphRole::call, 1)));
  };
  CHECK(sequence(true, true).empty());
  CHECK(sequence(false, false).empty());  // an ungated chunk makes no claim
  auto const violation = only(sequence(true, false), Rule::queueing);
  CHECK(names(violation, "upload activation"));
  CHECK(names(violation, "may queue behind graph 0: upload parameters"));
}

TEST_CASE("copies due after a chunk's window may queue behind the chunk") {
  Made copy(ActionKind::upload_activation, LaneKind::activation_up, 0);
  Made chunk(ActionKind::upload_parameters, LaneKind::parameter_up, 0);
  copy.in_slot(0, 1);
  chunk.gated(0, 0);
  CHECK(verify(GraphSequence(1).add(graph_of({copy, chunk}, GraphRole::call, 1))).empty());
}

TEST_CASE("a cycle of waits on two lanes is reported") {
  auto const graph = graph_of({Made(ActionKind::forward, LaneKind::compute, 0).after({1}),
                               Made(ActionKind::forward, LaneKind::compute, 1).after({0})});
  auto const violation = only(verify(graph), Rule::deadlock);
  CHECK(names(violation, "forward, device 0 waits for"));
  CHECK(names(violation, "forward, device 1 waits for"));
}

TEST_CASE("a cycle through the order of a lane is reported") {
  auto const graph =
      graph_of({Made(ActionKind::optimizer_step, LaneKind::optimizer).after({2}),
                Made(ActionKind::gradient_norm, LaneKind::optimizer),
                Made(ActionKind::copy_parameters, LaneKind::parameter_copy).after({1})});
  auto const violation = only(verify(graph), Rule::deadlock);
  CHECK(names(violation, "optimizer step of block 0"));
  CHECK(names(violation, "gradient norm of block 0"));
  CHECK(names(violation, "copy parameters of block 0"));
}

TEST_CASE("a cycle through the issue order of devices is reported") {
  // No lane and no wait closes the cycle: device 0 issues its copy only after its compute.
  auto const graph =
      graph_of({Made(ActionKind::forward, LaneKind::compute, 0).after({3}),
                Made(ActionKind::upload_activation, LaneKind::activation_up, 0),
                Made(ActionKind::forward, LaneKind::compute, 1).after({1}),
                Made(ActionKind::download_activation, LaneKind::activation_down, 1)});
  auto const violation = only(verify(graph), Rule::deadlock);
  CHECK(names(violation, "upload activation, device 0"));
  CHECK(names(violation, "download activation, device 1"));
}

TEST_CASE("a wait for a missing action is a deadlock") {
  for (auto const wait : {ActionId(7), ActionId::none()}) {
    auto graph = graph_of({Made(ActionKind::forward, LaneKind::compute, 0)});
    graph.actions[0].waits = {wait};
    CHECK(names(only(verify(graph), Rule::deadlock), "forward, device 0"));
  }
}

TEST_CASE("behind a flush without its P copies, weights are too old") {
  Training training;
  training.plan = {.devices = 2, .micro_batches_per_round = 2, .rounds = 1, .device_memory = 1_GiB};
  auto graphs = plan_training(training,
                              RoundRobinSchedule{},
                              PriorityTransferEngine{},
                              LayerEventProtocol({.master_copies = 1}),
                              OneLayerStages{});
  using enum Issue;
  CHECK(
      verify(sequence_of(graphs, std::vector{call, step, flush, synchronize, evaluation})).empty());
  CHECK(verify(sequence_of(graphs, std::vector{call, step, synchronize, evaluation})).empty());
  graphs.flush.actions.clear();
  graphs.flush.block_events.clear();
  auto const violations =
      verify(sequence_of(graphs, std::vector{call, step, flush, synchronize, evaluation}));
  CHECK(names(only(violations, Rule::copy_before_upload),
              "leaves the weights of another step than required by graph 3: upload parameters"));
}

TEST_CASE("a read of an entry without a writer is reported") {
  Ring const boundary{BufferKind::checkpoint, DeviceId::none(), 0};
  Made read(ActionKind::upload_activation, LaneKind::activation_up, 0);
  read.reads({boundary, 0});
  auto graph = graph_of({read});
  add_ring(graph, boundary, 1, {{ActionId(0)}});
  auto const violation = only(verify(GraphSequence(1).add(graph)), Rule::data);
  CHECK(names(violation, "upload activation, device 0 reads a buffer that nothing has written"));
}

TEST_CASE("several calls in an iteration require summed gradients") {
  auto parts = safe_parts();
  parts.step.action.waits.clear();
  Graphs const graphs(parts, 0);
  CHECK(verify(GraphSequence(2).add(graphs.call).add(graphs.step)).empty());
  auto other_device = graphs.call;
  other_device.actions[1].lane.device = DeviceId(1);
  auto const violations =
      verify(GraphSequence(2).add(graphs.call).add(other_device).add(graphs.step));
  only(violations, Rule::data);
}

TEST_CASE("a gradient that is added to its sum twice is reported") {
  Ring const landing{BufferKind::landing, DeviceId::none(), 0};
  Made down{ActionKind::download_gradients, LaneKind::gradient_down, 0};
  down.writes({landing, 0});
  Made sum{ActionKind::reduce_gradient, LaneKind::reduce};
  sum.reads({landing, 0}).writes(of_block(BufferKind::gradient)).after({0});
  auto once = graph_of({down, sum});
  add_ring(once, landing, 1, {{ActionId(0), ActionId(1)}});
  CHECK(verify(GraphSequence(1).add(once)).empty());
  auto twice = graph_of({down, sum, sum});
  add_ring(twice, landing, 1, {{ActionId(0), ActionId(1), ActionId(2)}});
  auto const violation = only(verify(GraphSequence(1).add(twice)), Rule::data);
  CHECK(names(violation, "adds what is added again by"));
}

TEST_CASE("no more violations are listed than requested, and each only once") {
  auto parts = safe_parts();
  parts.step.action.block_waits.clear();
  Graphs const graphs(parts, 1);
  GraphSequence sequence(2);
  for (int i = 0; i < 10; ++i) {
    sequence.add(graphs.call).add(graphs.step);
  }
  auto const all = verify(sequence, 1000);
  CHECK(all.size() > 3);
  for (std::size_t i = 1; i < all.size(); ++i) {
    CHECK(all[i] != all[i - 1]);
  }
  CHECK(verify(sequence, 3).size() == 3);
}

TEST_CASE("an unsafe sequence is refused, and the error explains the danger") {
  auto parts = safe_parts();
  Graphs const safe(parts, 1);
  CHECK_NOTHROW(require_safe(GraphSequence(2).add(safe.call).add(safe.step)));
  parts.step.action.block_waits.clear();
  Graphs const graphs(parts, 1);
  auto const error =
      error_of([&] { require_safe(GraphSequence(2).add(graphs.call).add(graphs.step)); });
  CHECK(error.code() == Errc::unsafe_graph);
  CHECK(error.message().find("rule 3") != std::string::npos);
  CHECK(error.message().find("optimizer step of block 0") != std::string::npos);
}

TEST_CASE(
    "uses of one block overlap where it stays, and have parts of their own in other entries") {
  Action upload;
  upload.pieces = {{BlockUseId(0), 0, 0, 4}};
  Action reader;
  reader.uses = {BlockUseId(1)};
  Ring const own{BufferKind::parameters, DeviceId(0), resident_ring(BlockId(0))};
  CHECK(detail::overlaps(own, upload, reader));
  CHECK_FALSE(detail::overlaps(own, upload, upload));  // other pieces
  CHECK_FALSE(detail::overlaps({BufferKind::parameters, DeviceId(0), 0}, upload, reader));
}

}  // namespace verify_test
