// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Prints the measured timelines of docs/04_event_protocol.md: two iterations of a small
/// model on two emulated devices, with the optimizer ordered by barriers and by events.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/policies/blocking_protocol.hpp>
#include <roundpipe/policies/layer_event_protocol.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/trace/text_timeline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <limits>
#include <span>
#include <thread>

#include "support/timed_layer.hpp"

namespace {

using namespace roundpipe;
using namespace roundpipe::bench;

/// An update of a block takes 6 ms.
class SlowOptimizer {
 public:
  [[nodiscard]] std::size_t state_arrays() const { return 0; }
  void update(UpdateContext const&,
              HostSpan<float>,
              HostSpan<float const>,
              std::span<HostSpan<float> const>) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(6));
  }
};

struct Busy {
  static void spend(HostStream& stream, std::chrono::microseconds duration) {
    stream.launch([duration] { std::this_thread::sleep_for(duration); });
  }
  static void write(HostStream& stream, DeviceSpan<double> place, double value) {
    stream.launch([place, value] { *place.device_pointer() = value; });
  }
};

/// f, r, b: forward, recomputation, backward; o: update. Every other iteration is in capital
/// letters.
char character_of(TimelineEntry const& entry) {
  char drawn = 0;
  switch (entry.kind) {
    case ActionKind::forward:
      drawn = 'f';
      break;
    case ActionKind::recompute:
      drawn = 'r';
      break;
    case ActionKind::backward:
      drawn = 'b';
      break;
    case ActionKind::optimizer_step:
      drawn = 'o';
      break;
    default:
      return 0;
  }
  auto const iteration = entry.graph / 2;  // runs: call, step, call, step, ...
  return static_cast<char>(iteration % 2 == 0 ? drawn - 'a' + 'A' : drawn);
}

template <EventProtocol P>
void draw(char const* title, P const& protocol) {
  constexpr std::size_t micro_batches = 4;
  constexpr std::size_t first = 3;  // the first drawn iteration, from 0
  HostBackendOptions devices;
  devices.devices = 2;
  HostBackend backend{devices};
  PipelineOptions options;
  options.micro_batches_per_round = micro_batches;
  options.timeline_calls = 100;
  options.optimizer_threads = 1;
  options.step_start = StepStart::each_block;  // as the pictures show it
  Pipeline pipeline{timed_model<Busy>({256, 256, std::chrono::milliseconds(1)}, 7),
                    SlowOptimizer{},
                    backend,
                    options,
                    Policies{.protocol = protocol}};
  Batch const batch(micro_batches, {1, 1});
  for (std::size_t i = 0; i < first + 3; ++i) {
    pipeline.forward_backward(batch);
    pipeline.step();
  }
  pipeline.synchronize();
  auto const timeline = pipeline.timeline();
  TextTimelineOptions text{std::numeric_limits<double>::infinity(), 0, 96, character_of};
  for (auto const& entry : timeline) {
    if (entry.graph == 2 * first) {
      text.from_s = std::min(text.from_s, entry.start_s);
    }
  }
  text.to_s = text.from_s + 0.2;
  std::cout << title << '\n';
  write_text_timeline(std::cout, timeline, text);
  std::cout << '\n';
}

}  // namespace

int main() {
  draw("barriers, synchronous", BlockingProtocol(0));
  draw("barriers, staleness 1, one master copy", BlockingProtocol({.master_copies = 1}));
  draw("events, synchronous", LayerEventProtocol(0));
  draw("events, staleness 1, one master copy", LayerEventProtocol({.master_copies = 1}));
  draw("events, staleness 1, two master copies", LayerEventProtocol(1));
  return 0;
}
