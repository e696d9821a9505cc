// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Random programs over three devices. The same operations run twice: on threads, ordered by events
// and fences, and on an inline stream, one after another. In the end all memory must be equal.

#include <roundpipe/backend/host_backend.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace host_stress_test {

namespace {

using namespace roundpipe;

constexpr std::size_t devices = 3;
constexpr std::size_t cells_per_place = 6;  // places: each device, and the host
constexpr std::size_t words = 64;
constexpr Bytes cell_bytes = words * sizeof(std::uint32_t);
constexpr std::size_t streams = devices * device_lane_count;
constexpr std::size_t host_place = devices;

enum class Verb : std::uint8_t { mix, fill, round, up, down };

struct Operation {
  Verb verb{};
  std::size_t stream = 0;
  std::size_t to = 0;  // cells
  std::size_t from = 0;
  std::uint32_t number = 0;
  bool fenced = false;  // whether it waits for a fence that the host signals later
};

std::vector<Operation> random_program(std::size_t length, std::uint32_t seed) {
  std::mt19937 random(seed);
  auto const below = [&](std::size_t n) { return random() % n; };
  auto const cell = [&](std::size_t place) {
    return place * cells_per_place + below(cells_per_place);
  };
  std::vector<Operation> program;
  for (std::size_t i = 0; i < length; ++i) {
    Operation op;
    op.verb = static_cast<Verb>(below(5));
    op.stream = below(streams);
    auto const device = op.stream / device_lane_count;
    op.to = cell(op.verb == Verb::down ? host_place : device);
    op.from = cell(op.verb == Verb::up ? host_place : device);
    op.number = static_cast<std::uint32_t>(random());
    op.fenced = below(16) == 0;
    if (op.verb == Verb::round && op.from == op.to) {
      op.verb = Verb::fill;
    }
    program.push_back(op);
  }
  return program;
}

/// The cells, in slabs of a backend.
struct Memory {
  explicit Memory(HostBackend& backend)
      : host(backend.allocate_host(cells_per_place * cell_bytes)) {
    for (std::size_t d = 0; d < devices; ++d) {
      device.push_back(backend.allocate_device(DeviceId{d}, cells_per_place * cell_bytes));
    }
  }
  DeviceBytes device_cell(std::size_t cell) const {
    return device[cell / cells_per_place].bytes().subspan(cell % cells_per_place * cell_bytes,
                                                          cell_bytes);
  }
  HostBytes host_cell(std::size_t cell) const {
    return host.bytes().subspan(cell % cells_per_place * cell_bytes, cell_bytes);
  }
  std::vector<std::byte> all() const {
    std::vector<std::byte> result(host.bytes().begin(), host.bytes().end());
    for (auto const& slab : device) {
      auto const* const pointer = slab.bytes().device_pointer();
      result.insert(result.end(), pointer, pointer + slab.bytes().size());
    }
    return result;
  }

  std::vector<HostBackend::DeviceSlab> device;
  HostBackend::HostSlab host;
};

void enqueue(HostStream& stream, Operation const& op, Memory const& memory) {
  switch (op.verb) {
    case Verb::mix:
      stream.launch(
          [to = memory.device_cell(op.to), from = memory.device_cell(op.from), number = op.number] {
            auto* const a = reinterpret_cast<std::uint32_t*>(to.device_pointer());
            auto const* const b = reinterpret_cast<std::uint32_t const*>(from.device_pointer());
            for (std::size_t i = 0; i < words; ++i) {
              a[i] = std::rotl(a[i], 5) * 2654435761U + b[i] + number;
            }
          });
      return;
    case Verb::fill:
      stream.fill(memory.device_cell(op.to), static_cast<std::byte>(op.number));
      return;
    case Verb::round: {
      auto const to = memory.device_cell(op.to);
      auto const from = memory.device_cell(op.from);
      stream.round({reinterpret_cast<BFloat16*>(to.device_pointer()), words},
                   {reinterpret_cast<float const*>(from.device_pointer()), words});
      return;
    }
    case Verb::up:
      stream.copy(memory.device_cell(op.to), memory.host_cell(op.from));
      return;
    case Verb::down:
      stream.copy(memory.host_cell(op.to), memory.device_cell(op.from));
      return;
  }
}

/// Enqueues a program on the streams of a backend, one for each lane.
class Threaded {
 public:
  explicit Threaded(HostBackend& backend) : memory(backend), fence_(backend.make_fence()) {
    for (std::size_t s = 0; s < streams; ++s) {
      DeviceId const device(s / device_lane_count);
      streams_.push_back(backend.make_stream(device, static_cast<LaneKind>(s % device_lane_count)));
      events_.push_back(backend.make_event(device));
    }
  }

  void enqueue_all(std::vector<Operation> const& program) {
    std::uint64_t fences = 0;
    for (std::size_t i = 0; i < program.size(); ++i) {
      auto const& op = program[i];
      auto& stream = streams_[op.stream];
      auto& to = cells_[op.to];
      auto& from = cells_[op.from];
      // Wait for the last writer of both, and for the readers of the overwritten data since then.
      // One event for each stream is enough: its latest record follows all work of the stream.
      std::vector<std::size_t> before = to.readers;
      before.push_back(to.writer);
      before.push_back(from.writer);
      for (auto const other : before) {
        if (other != none && other != op.stream) {
          stream.wait(events_[other]);
        }
      }
      if (op.fenced) {
        stream.wait(fence_, ++fences);
      }
      enqueue(stream, op, memory);
      stream.record(events_[op.stream]);
      from.readers.push_back(op.stream);
      to.readers.clear();
      to.writer = op.stream;
      if (i % 10 == 9) {
        fence_.signal(fences);
      }
    }
    fence_.signal(fences);
  }

  void synchronize() {
    for (auto& stream : streams_) {
      stream.synchronize();
    }
  }

  Memory memory;

 private:
  static constexpr std::size_t none = streams;
  struct Cell {
    std::size_t writer = none;
    std::vector<std::size_t> readers;
  };

  std::array<Cell, (devices + 1) * cells_per_place> cells_;
  HostFence fence_;
  std::vector<HostEvent> events_;
  std::vector<HostStream> streams_;
};

HostBackendOptions three_devices() {
  HostBackendOptions options;
  options.devices = devices;
  return options;
}

/// Irregular delays of up to 50 us.
HostBackendOptions three_slow_devices() {
  auto options = three_devices();
  auto const calls = std::make_shared<std::atomic<std::uint32_t>>(0);
  options.delay = [calls](DeviceId, LaneKind) {
    auto const number = calls->fetch_add(1) * 2654435761U;
    return std::chrono::nanoseconds(number % 4 == 0 ? number % 50000 : 0);
  };
  options.link = {
      .upload_bytes_per_second = 1e9, .download_bytes_per_second = 1e8, .latency_seconds = 1e-6};
  options.root_bytes_per_second = 1e9;
  return options;
}

}  // namespace

TEST_CASE("random programs over three devices give the same memory as in-order execution") {
  for (std::uint32_t seed = 0; seed < 4; ++seed) {
    auto const program = random_program(seed % 2 == 0 ? 5000 : 1500, seed);

    HostBackend plain(three_devices());
    Memory const expected(plain);
    HostStream in_order;
    for (auto const& op : program) {
      enqueue(in_order, op, expected);
    }

    HostBackend backend(seed % 2 == 0 ? three_devices() : three_slow_devices());
    Threaded threaded(backend);
    threaded.enqueue_all(program);
    threaded.synchronize();
    CHECK(threaded.memory.all() == expected.all());
  }
}

TEST_CASE("a random program can be aborted at any time without hanging") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    auto const program = random_program(400, seed);
    HostBackend backend(three_slow_devices());
    Threaded threaded(backend);
    std::thread aborting([&backend, seed] {
      auto stream = backend.make_stream(DeviceId{0}, LaneKind::compute);
      for (std::uint32_t i = 0; i < seed; ++i) {  // a little later each time
        stream.launch([] {});
      }
      stream.synchronize();
      backend.abort();
    });
    threaded.enqueue_all(program);
    if (seed % 2 == 0) {
      auto const error = test::error_of([&] { threaded.synchronize(); });
      CHECK((error.code() == Errc::aborted || !error.code()));
    }
    aborting.join();
    CHECK(test::error_of([&] { threaded.synchronize(); }).code() == Errc::aborted);
  }
}

TEST_CASE("a random program can fail anywhere without hanging") {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    auto const program = random_program(400, seed);
    auto options = three_slow_devices();
    options.fault = [seed](DeviceId, LaneKind, std::uint64_t number) {
      require(number < seed, Errc::not_finite, "injected");
    };
    HostBackend backend(options);
    Threaded threaded(backend);
    threaded.enqueue_all(program);
    CHECK(test::error_of([&] { threaded.synchronize(); }).code() == Errc::not_finite);
  }
}

}  // namespace host_stress_test
