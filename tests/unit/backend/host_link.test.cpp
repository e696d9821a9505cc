// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_link.hpp>

#include <roundpipe/backend/host_backend.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

namespace host_link_test {

namespace {

using namespace roundpipe;

DeviceId const d0{0};
DeviceId const d1{1};

/// A stream with slabs to copy between, and events before and after its copies.
struct Lane {
  Lane(HostBackend& backend, DeviceId device, LaneKind kind, Bytes bytes)
      : stream(backend.make_stream(device, kind)),
        before(backend.make_event(device)),
        after(backend.make_event(device)),
        on_device(backend.allocate_device(device, bytes)),
        on_host(backend.allocate_host(bytes)) {}

  void upload() {
    stream.record(before);
    stream.copy(on_device.bytes(), on_host.bytes());
    stream.record(after);
  }
  void download() {
    stream.record(before);
    stream.copy(on_host.bytes(), on_device.bytes());
    stream.record(after);
  }
  void send() {  // to the host, whose memory is as good as that of another device
    stream.record(before);
    stream.copy_to_peer({on_host.bytes().data(), on_host.bytes().size()}, on_device.bytes());
    stream.record(after);
  }

  HostStream stream;
  HostEvent before;
  HostEvent after;
  HostBackend::DeviceSlab on_device;
  HostBackend::HostSlab on_host;
};

double last_end_after_first_start(Lane const& a, Lane const& b) {
  return std::max({a.after.seconds_since(a.before),
                   a.after.seconds_since(b.before),
                   b.after.seconds_since(a.before),
                   b.after.seconds_since(b.before)});
}

/// Whether \p attempt succeeds in one of a few tries. The scheduler may stop a stream's thread
/// between its event and its copy, so one try can fail; a forbidden behaviour fails in every try.
template <class F>
bool holds_once(F attempt) {
  for (int i = 0; i < 5; ++i) {
    if (attempt()) {
      return true;
    }
  }
  return false;
}

}  // namespace

TEST_CASE("copies move every byte, at any rate and size") {
  for (double const rate : {0.0, 1e9}) {
    for (double const root : {0.0, 5e8}) {
      HostBackendOptions options;
      options.devices = 2;
      options.link = {.upload_bytes_per_second = rate,
                      .download_bytes_per_second = rate,
                      .peer_bytes_per_second = rate};
      options.root_bytes_per_second = root;
      HostBackend backend(options);
      auto up = backend.make_stream(d0, LaneKind::activation_up);
      auto peer = backend.make_stream(d0, LaneKind::peer);
      auto down = backend.make_stream(d1, LaneKind::activation_down);
      auto uploaded = backend.make_event(d0);
      auto sent = backend.make_event(d0);
      for (Bytes const bytes : {1U, 2U, 3U, 255U, 256U, 100001U}) {
        auto const source = backend.allocate_host(bytes);
        auto const device = backend.allocate_device(d0, bytes);
        auto const other = backend.allocate_device(d1, bytes);
        auto const target = backend.allocate_host(bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
          source.bytes()[i] = static_cast<std::byte>(i * 7 + 1);
        }
        up.copy(device.bytes(), source.bytes());
        up.record(uploaded);
        peer.wait(uploaded);
        peer.copy_to_peer(other.bytes(), device.bytes());
        peer.record(sent);
        down.wait(sent);
        down.copy(target.bytes(), other.bytes());
        down.synchronize();
        CHECK(std::ranges::equal(source.bytes(), target.bytes()));
      }
    }
  }
}

TEST_CASE("a copy takes at least its latency plus its bytes at the link's rate") {
  HostBackendOptions options;
  options.link = {.upload_bytes_per_second = 1e9,
                  .download_bytes_per_second = 5e8,
                  .peer_bytes_per_second = 4e8,
                  .latency_seconds = 1e-3};
  options.root_bytes_per_second = 1e12;  // which copies to other devices do not pass
  HostBackend backend(options);
  Lane up(backend, d0, LaneKind::parameter_up, 2000000);
  Lane peer(backend, d0, LaneKind::peer, 2000000);
  Lane down(backend, d0, LaneKind::gradient_down, 2000000);
  up.upload();
  down.download();
  peer.send();
  up.stream.synchronize();
  down.stream.synchronize();
  peer.stream.synchronize();
  CHECK(peer.after.seconds_since(peer.before) >= 0.006);
  CHECK(up.after.seconds_since(up.before) >= 0.003);
  CHECK(down.after.seconds_since(down.before) >= 0.005);
}

TEST_CASE("copies of one direction on one device take turns") {
  using Kinds = std::pair<LaneKind, LaneKind>;
  for (auto const& [first, second] : {Kinds{LaneKind::activation_up, LaneKind::parameter_up},
                                      Kinds{LaneKind::activation_up, LaneKind::compute}}) {
    HostBackendOptions options;
    options.link = {.upload_bytes_per_second = 1e8};
    HostBackend backend(options);
    Lane one(backend, d0, first, 500000);
    Lane two(backend, d0, second, 500000);
    one.upload();
    two.upload();
    one.stream.synchronize();
    two.stream.synchronize();
    CHECK(last_end_after_first_start(one, two) >= 0.010);
  }
  HostBackendOptions options;
  options.link = {.download_bytes_per_second = 1e8};
  HostBackend backend(options);
  Lane one(backend, d0, LaneKind::activation_down, 500000);
  Lane two(backend, d0, LaneKind::gradient_down, 500000);
  one.download();
  two.download();
  one.stream.synchronize();
  two.stream.synchronize();
  CHECK(last_end_after_first_start(one, two) >= 0.010);
}

TEST_CASE("a small copy waits behind a large one in flight") {
  HostBackendOptions options;
  options.link = {.upload_bytes_per_second = 1e8, .download_bytes_per_second = 1e8};
  options.delay = [](DeviceId, LaneKind lane) {  // the large copy starts first
    return std::chrono::milliseconds(lane == LaneKind::parameter_up ? 0 : 10);
  };
  CHECK(holds_once([&] {
    HostBackend backend(options);
    Lane large(backend, d0, LaneKind::parameter_up, 4000000);
    Lane small(backend, d0, LaneKind::activation_up, 1000000);
    large.upload();
    small.upload();
    large.stream.synchronize();
    small.stream.synchronize();
    return small.after.seconds_since(large.after) >= 0;
  }));
}

TEST_CASE("copies of both directions go at once") {
  HostBackendOptions options;
  options.link = {.upload_bytes_per_second = 1e8, .download_bytes_per_second = 1e8};
  CHECK(holds_once([&] {  // one after the other they take 80 ms however the threads are scheduled
    HostBackend backend(options);
    Lane up(backend, d0, LaneKind::parameter_up, 4000000);
    Lane down(backend, d0, LaneKind::activation_down, 4000000);
    up.upload();
    down.download();
    up.stream.synchronize();
    down.stream.synchronize();
    return last_end_after_first_start(up, down) < 0.080;
  }));
}

TEST_CASE("each device has its own link") {
  HostBackendOptions options;
  options.devices = 2;
  options.link = {.upload_bytes_per_second = 1e8};
  options.delay = [](DeviceId device, LaneKind) {
    return std::chrono::milliseconds(device == d0 ? 0 : 10);
  };
  CHECK(holds_once([&] {
    HostBackend backend(options);
    Lane large(backend, d0, LaneKind::parameter_up, 4000000);
    Lane small(backend, DeviceId{1}, LaneKind::parameter_up, 1000);
    large.upload();
    small.upload();
    large.stream.synchronize();
    small.stream.synchronize();
    return small.after.seconds_since(large.after) < 0;
  }));
}

TEST_CASE("all devices and both directions share a root") {
  HostBackendOptions options;
  options.devices = 2;
  options.link = {.upload_bytes_per_second = 2e8, .download_bytes_per_second = 2e8};
  options.root_bytes_per_second = 2e8;
  for (auto const device : {0, 1}) {
    HostBackend backend(options);
    Lane up(backend, d0, LaneKind::parameter_up, 1000000);
    Lane down(backend, DeviceId{device}, LaneKind::gradient_down, 1000000);
    up.upload();
    down.download();
    up.stream.synchronize();
    down.stream.synchronize();
    CHECK(last_end_after_first_start(up, down) >= 0.010);
  }
}

TEST_CASE(
    "a transfer slows down when another starts on the root, and speeds up again when that ends") {
  // 20 ms at half the root's rate, then 30 ms at its full rate: 50 ms, not 70 or 80.
  CHECK(holds_once([] {
    auto const status = std::make_shared<detail::HostStatus>();
    detail::HostRoot root(status, 1e8);
    auto const start = detail::HostClock::now();
    detail::HostRoot::Flow large(root, 4000000, detail::HostRoot::unlimited);
    std::thread waiting;
    {
      detail::HostRoot::Flow small(root, 1000000, detail::HostRoot::unlimited);
      waiting = std::thread([&] { large.wait_until_left({}); });
      small.wait_until_left({});
      CHECK(detail::HostClock::now() - start >= std::chrono::milliseconds(20));
    }
    waiting.join();
    auto const took = detail::HostClock::now() - start;
    CHECK(took >= std::chrono::milliseconds(50));
    return took < std::chrono::milliseconds(70);
  }));
}

}  // namespace host_link_test
