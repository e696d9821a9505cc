// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The smallest models of Backend and of its parts: exactly the members that the concepts
/// require.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe::test {

/// Movable, not copyable, not default-constructible.
class MoveOnly {
 public:
  explicit MoveOnly(int) {}
  MoveOnly(MoveOnly&&) = default;
  MoveOnly& operator=(MoveOnly&&) = default;
};

struct EventArchetype : MoveOnly {
  using MoveOnly::MoveOnly;
  void wait() {}
  bool ready() { return true; }
  float seconds_since(EventArchetype const&) const { return 0; }
};

struct FenceArchetype : MoveOnly {
  using MoveOnly::MoveOnly;
  void signal(std::uint64_t) {}
};

struct StreamArchetype : MoveOnly {
  using MoveOnly::MoveOnly;
  void record(EventArchetype&) {}
  void wait(EventArchetype&) {}
  void wait(FenceArchetype const&, std::uint64_t) {}
  void copy(DeviceBytes, HostSpan<std::byte const>) {}
  void copy(HostBytes, DeviceSpan<std::byte const>) {}
  void fill(DeviceBytes, std::byte) {}
  void round(DeviceSpan<BFloat16>, DeviceSpan<float const>) {}
  void round(DeviceSpan<Float16>, DeviceSpan<float const>) {}
};

/// Not movable: no code needs to move a backend.
class BackendArchetype {
 public:
  using Stream = StreamArchetype;
  using Event = EventArchetype;
  using Fence = FenceArchetype;

  struct DeviceSlab : MoveOnly {
    using MoveOnly::MoveOnly;
    DeviceBytes bytes() { return {}; }
  };
  struct HostSlab : MoveOnly {
    using MoveOnly::MoveOnly;
    HostBytes bytes() { return {}; }
  };

  BackendArchetype() = default;
  BackendArchetype(BackendArchetype const&) = delete;
  BackendArchetype& operator=(BackendArchetype const&) = delete;

  unsigned char device_count() { return 1; }
  DeviceProperties device_properties(DeviceId) { return {}; }
  Stream make_stream(DeviceId, LaneKind) { return Stream(0); }
  Event make_event(DeviceId) { return Event(0); }
  Fence make_fence() { return Fence(0); }
  DeviceSlab allocate_device(DeviceId, Bytes) { return DeviceSlab(0); }
  HostSlab allocate_host(Bytes) { return HostSlab(0); }
  void abort() {}
};

}  // namespace roundpipe::test
