// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// expect-error: (required expression|because) .*backend\.abort\(\).* (is|would be) invalid

#include <roundpipe/concepts/backend.hpp>

namespace {

struct Event {
  void wait() {}
  bool ready() { return true; }
  double seconds_since(Event const&) const { return 0; }
};

struct Fence {
  void signal(std::uint64_t) {}
};

struct Stream {
  void record(Event&) {}
  void wait(Event&) {}
  void wait(Fence const&, std::uint64_t) {}
  void copy(roundpipe::DeviceBytes, roundpipe::HostSpan<std::byte const>) {}
  void copy(roundpipe::HostBytes, roundpipe::DeviceSpan<std::byte const>) {}
  void fill(roundpipe::DeviceBytes, std::byte) {}
  void round(roundpipe::DeviceSpan<roundpipe::BFloat16>, roundpipe::DeviceSpan<float const>) {}
  void round(roundpipe::DeviceSpan<roundpipe::Float16>, roundpipe::DeviceSpan<float const>) {}
};

template <class Bytes>
struct Slab {
  Bytes bytes() { return {}; }
};

/// Nothing ends the waits of this backend: a pipeline on it could hang at teardown.
struct Endless {
  using Stream = ::Stream;
  using Event = ::Event;
  using Fence = ::Fence;
  std::size_t device_count() { return 1; }
  roundpipe::DeviceProperties device_properties(roundpipe::DeviceId) { return {}; }
  Stream make_stream(roundpipe::DeviceId, roundpipe::LaneKind) { return {}; }
  Event make_event(roundpipe::DeviceId) { return {}; }
  Fence make_fence() { return {}; }
  Slab<roundpipe::DeviceBytes> allocate_device(roundpipe::DeviceId, roundpipe::Bytes) { return {}; }
  Slab<roundpipe::HostBytes> allocate_host(roundpipe::Bytes) { return {}; }
#ifdef ROUNDPIPE_CONTROL
  void abort() {}
#endif
};

template <roundpipe::Backend B>
void run_on(B&) {}

}  // namespace

void use() {
  Endless backend;
  run_on(backend);
}
