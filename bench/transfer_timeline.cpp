// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief Prints the measured timelines of docs/03_transfers.md: some slots of a device, with
/// copies planned in windows and unplanned.

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <roundpipe/policies/unplanned_transfers.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <roundpipe/trace/text_timeline.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <limits>
#include <thread>

#include "support/timed_layer.hpp"

namespace {

using namespace roundpipe;
using namespace roundpipe::bench;

struct Busy {
  static void spend(HostStream& stream, std::chrono::microseconds duration) {
    stream.launch([duration] { std::this_thread::sleep_for(duration); });
  }
  static void write(HostStream& stream, DeviceSpan<double> place, double value) {
    stream.launch([place, value] { *place.device_pointer() = value; });
  }
};

/// Two layers a stage; the last stage also has the loss.
class PairedLayers {
 public:
  [[nodiscard]] Partition partition(PartitionProblem const& problem) const {
    Partition partition;
    auto const layers = problem.costs.size();
    for (std::size_t first = 0; first + 2 < layers; first += 2) {
      partition.forward.push_back({first, std::min<std::size_t>(2, layers - 1 - first)});
    }
    for (auto layer = layers; layer > 0; --layer) {
      partition.backward.push_back({layer - 1, 1});
    }
    return partition;
  }
};

constexpr std::size_t drawn_call = 2;

/// For device 0 and the drawn call: a micro-batch's number for its compute and its activations, p
/// and g for chunks of parameters and gradients.
char character_of(TimelineEntry const& entry) {
  if (entry.lane.device != DeviceId(0)) {
    return 0;
  }
  switch (entry.lane.kind) {
    case LaneKind::parameter_up:
      return 'p';
    case LaneKind::gradient_down:
      return 'g';
    default:
      return static_cast<char>('0' + entry.micro_batch.index());
  }
}

template <TransferPolicy T>
void draw(char const* title, T const& transfers) {
  constexpr std::size_t micro_batches = 4;
  HostBackendOptions machine;
  machine.devices = 2;
  machine.link = {100e6, 100e6, 0};
  HostBackend backend(machine);
  PipelineOptions options;
  options.micro_batches_per_round = micro_batches;
  options.timeline_calls = 100;
  // Forward stages take 6 ms a micro-batch, an activation 1.3 ms, a stage's parameters 15 ms.
  TimedOptions const timed{768 * Bytes{1024}, 128 * Bytes{1024}, std::chrono::milliseconds(3)};
  Pipeline pipeline{timed_model<Busy>(timed, 10),
                    Sgd{},
                    backend,
                    options,
                    Policies{.transfers = transfers, .partitioner = PairedLayers{}}};
  Batch const batch(micro_batches, {1, 1});
  for (std::size_t i = 0; i <= drawn_call; ++i) {
    pipeline.forward_backward(batch);
    pipeline.step();
  }
  pipeline.synchronize();
  auto const timeline = pipeline.timeline();
  TextTimelineOptions text{std::numeric_limits<double>::infinity(), 0, 72, character_of};
  for (auto const& entry : timeline) {  // runs: call, step, call, step, ...
    if (entry.graph == 2 * drawn_call && entry.lane == Lane{LaneKind::compute, DeviceId(0)}) {
      text.from_s = std::min(text.from_s, entry.start_s);
    }
  }
  text.from_s += 0.028;  // the call before is over
  text.to_s = text.from_s + 0.072;
  std::cout << title << '\n';
  write_text_timeline(std::cout, timeline, text);
  std::cout << '\n';
}

}  // namespace

int main() {
  draw("planned", PriorityTransferEngine{});
  draw("unplanned", UnplannedTransfers{});
  return 0;
}
