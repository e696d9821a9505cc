// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What can a device's link do, and what does an activation wait for while parameters go up?
//
// link: GB/s of each device by the size of a copy: up, down, both ways; one device, all at once.
//
// activation: the time from when a 16 MiB upload is due until the host knows that it has arrived,
// for at least 250 uploads, as multiples of the median on an idle link; and the share of the link
// that parameters keep. Copies of one direction share an engine that does not preempt, so planning
// matters:
//   idle       nothing else goes up
//   planned    in windows: the activation first, then a chunk that the window has room for,
//              behind an event
//   arrivals   pieces all the time, on the stream of low priority, so many queued; activations
//              come at random. A stream that always has a copy ready keeps the engine, whatever the
//              priorities and the pieces: it must yield between them, or have one queued at a time
//   unplanned  the same with copies of 512 MiB
//
// The bench compares all copied data, byte by byte.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/cuda_backend.hpp>

#include <benchmark/benchmark.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace {

using namespace roundpipe;
using Clock = std::chrono::steady_clock;
using Stream = cu::CudaStream;
using Event = cu::CudaEvent;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The value below which \p share of \p values lie.
double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  auto const last = static_cast<double>(values.size() - 1);
  return values[static_cast<std::size_t>(share * last + 0.5)];
}

/// Fills \p bytes with words that encode their position and \p seed.
void write_pattern(HostBytes bytes, std::uint64_t seed) {
  for (Bytes at = 0; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    auto const word = (at + seed) * 0x9E3779B97F4A7C15U;
    std::memcpy(bytes.data() + at, &word, sizeof(word));
  }
}

bool equal(HostBytes a, HostBytes b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

HostSpan<std::byte const> source(HostBytes bytes) {
  return bytes;
}
DeviceSpan<std::byte const> source(DeviceBytes bytes) {
  return bytes;
}

/// Copies \p from to \p to, in copies of \p piece bytes.
template <class To, class From>
void copy_in_pieces(Stream& stream, To to, From from, Bytes piece) {
  for (Bytes at = 0; at < to.size(); at += piece) {
    auto const bytes = std::min(piece, to.size() - at);
    stream.copy(to.subspan(at, bytes), source(from.subspan(at, bytes)));
  }
}

// The link alone.

enum Direction : std::int64_t { up = 1, down = 2, both = 3 };

/// One device's share of the bench of the link.
class Link {
 public:
  Link(cu::CudaBackend& backend, DeviceId device, Bytes bytes)
      : sent_(backend.allocate_host(bytes)),
        received_(backend.allocate_host(bytes)),
        target_(backend.allocate_device(device, bytes)),
        origin_(backend.allocate_device(device, bytes)),
        up_(backend.make_stream(device, LaneKind::parameter_up)),
        down_(backend.make_stream(device, LaneKind::gradient_down)),
        events_{backend.make_event(device),
                backend.make_event(device),
                backend.make_event(device),
                backend.make_event(device)} {
    write_pattern(sent_.bytes(), static_cast<std::uint64_t>(device.value()));
    up_.copy(origin_.bytes(), source(sent_.bytes()));
    up_.synchronize();
  }

  /// Enqueues all copies behind \p fence.
  void enqueue(Direction direction, Bytes piece, cu::CudaFence const& fence, std::uint64_t value) {
    if ((direction & up) != 0) {
      up_.wait(fence, value);
      up_.record(events_[0]);
      copy_in_pieces(up_, target_.bytes(), sent_.bytes(), piece);
      up_.record(events_[1]);
    }
    if ((direction & down) != 0) {
      down_.wait(fence, value);
      down_.record(events_[2]);
      copy_in_pieces(down_, received_.bytes(), origin_.bytes(), piece);
      down_.record(events_[3]);
    }
  }

  /// The seconds of a direction's copies; 0 for a direction without copies. Waits for them.
  double seconds(Direction direction, Direction wanted) {
    if ((direction & wanted) == 0) {
      return 0;
    }
    auto const at = wanted == up ? 0U : 2U;
    events_[at + 1].wait();
    return events_[at + 1].seconds_since(events_[at]);
  }

  /// Whether all copies of \p direction have arrived.
  bool is_right(Direction direction) {
    if ((direction & down) != 0 && !equal(sent_.bytes(), received_.bytes())) {
      return false;
    }
    if ((direction & up) != 0) {
      std::memset(received_.bytes().data(), 0, received_.bytes().size());
      down_.copy(received_.bytes(), source(target_.bytes()));
      down_.synchronize();
      return equal(sent_.bytes(), received_.bytes());
    }
    return true;
  }

 private:
  cu::CudaBackend::HostSlab sent_;
  cu::CudaBackend::HostSlab received_;
  cu::CudaBackend::DeviceSlab target_;
  cu::CudaBackend::DeviceSlab origin_;
  Stream up_;
  Stream down_;
  std::array<Event, 4> events_;  // up: first, last; down: first, last
};

void link(benchmark::State& state) {
  constexpr Bytes most = 256_MiB;
  constexpr Bytes most_copies = 256;  // a stream takes this many without blocking
  auto const devices = static_cast<std::size_t>(state.range(0));
  auto const direction = static_cast<Direction>(state.range(1));
  auto const piece = static_cast<Bytes>(state.range(2)) * 1_KiB;
  auto const bytes = std::min(most, most_copies * piece);
  cu::CudaBackend backend({.devices = cu::first_devices(devices)});
  std::vector<Link> links;
  for (std::size_t d = 0; d < devices; ++d) {
    links.emplace_back(backend, DeviceId(d), bytes);
  }
  auto fence = backend.make_fence();
  std::uint64_t pass = 0;
  std::vector<double> ups;
  std::vector<double> downs;
  for (auto _ : state) {
    ++pass;
    for (auto& each : links) {
      each.enqueue(direction, piece, fence, pass);
    }
    fence.signal(pass);
    double longest = 0;
    for (auto& each : links) {
      auto const up_s = each.seconds(direction, up);
      auto const down_s = each.seconds(direction, down);
      longest = std::max({longest, up_s, down_s});
      ups.push_back(up_s > 0 ? 1e-9 * static_cast<double>(bytes) / up_s : 0);
      downs.push_back(down_s > 0 ? 1e-9 * static_cast<double>(bytes) / down_s : 0);
    }
    state.SetIterationTime(longest);
  }
  for (auto& each : links) {
    if (!each.is_right(direction)) {
      state.SkipWithError("the copy differs from its source");
      return;
    }
  }
  if ((direction & up) != 0) {
    state.counters["up_GBps"] = quantile(ups, 0.5);
  }
  if ((direction & down) != 0) {
    state.counters["down_GBps"] = quantile(downs, 0.5);
  }
}

void link_sizes(benchmark::internal::Benchmark* bench) {
  int present = 0;
  if (cudaGetDeviceCount(&present) != cudaSuccess) {
    present = 1;
  }
  bench->ArgNames({"devices", "direction", "KiB"});
  for (std::int64_t const devices : {1, present}) {
    for (auto const direction : {up, down, both}) {
      for (std::int64_t kib = 64; kib <= 65536; kib *= 4) {
        bench->Args({devices, direction, kib});
      }
    }
    if (present <= 1) {
      break;
    }
  }
}

// An activation among parameters.

constexpr Bytes activation_bytes = 16_MiB;
constexpr std::size_t samples = 250;

/// The results of an experiment.
struct Latencies {
  std::vector<double> seconds;  ///< By the host's clock, for each activation.
  std::vector<double>
      device_seconds;  ///< By the device's clock, from the copy's turn in its stream.
  double parameter_bytes_per_second = 0;

  [[nodiscard]] double median() const { return quantile(seconds, 0.5); }
  [[nodiscard]] double p99() const { return quantile(seconds, 0.99); }
};

/// One device with activations and parameters to upload.
class Uploads {
 public:
  static constexpr Bytes parameter_bytes = 512_MiB;
  static constexpr Bytes most_behind = 256_MiB;
  static constexpr std::size_t places = 4;  // of activations, used in turn

  Uploads()
      : backend_({.devices = cu::first_devices(1)}),
        host_(backend_.allocate_host(total)),
        back_(backend_.allocate_host(total)),
        device_(backend_.allocate_device(id, total)),
        activations_(backend_.make_stream(id, LaneKind::activation_up)),
        parameters_(backend_.make_stream(id, LaneKind::parameter_up)) {
    write_pattern(host_.bytes(), 1);
  }

  /// The bytes a second that the link moves with nothing else on it.
  double link_bytes_per_second() {
    auto first = backend_.make_event(id);
    auto last = backend_.make_event(id);
    std::vector<double> rates;
    for (int i = 0; i < 5; ++i) {
      parameters_.record(first);
      copy_parameters(0, parameter_bytes, parameter_bytes);
      parameters_.record(last);
      last.wait();
      rates.push_back(static_cast<double>(parameter_bytes) / last.seconds_since(first));
    }
    return quantile(rates, 0.5);
  }

  /// An activation every \p window_s, and behind each a chunk of \p chunk_bytes in copies of \p
  /// piece_bytes. The host issues windows two ahead and opens them by its clock.
  Latencies in_windows(double window_s, Bytes chunk_bytes, Bytes piece_bytes) {
    constexpr std::size_t ahead = 2;
    constexpr std::size_t warm_up = 5;
    constexpr auto windows = warm_up + samples;
    auto fence = backend_.make_fence();
    std::vector<Event> starts;
    std::vector<Event> ends;
    for (std::size_t i = 0; i < ahead + 1; ++i) {
      starts.push_back(backend_.make_event(id));
      ends.push_back(backend_.make_event(id));
    }
    auto const issue = [&](std::size_t w) {
      auto const i = w % ends.size();
      activations_.wait(fence, w + 1);
      activations_.record(starts[i]);
      copy_activation(w);
      activations_.record(ends[i]);
      parameters_.wait(ends[i]);
      copy_parameters(w * chunk_bytes, chunk_bytes, piece_bytes);
    };
    for (std::size_t w = 0; w < ahead; ++w) {
      issue(w);
    }
    Latencies found;
    auto const begin = Clock::now();
    for (std::size_t w = 0; w < windows; ++w) {
      while (seconds_since(begin) < window_s * static_cast<double>(w)) {
      }
      auto const due = Clock::now();
      fence.signal(w + 1);
      auto& end = ends[w % ends.size()];
      while (!end.ready()) {
      }
      if (w >= warm_up) {
        found.seconds.push_back(seconds_since(due));
        found.device_seconds.push_back(end.seconds_since(starts[w % starts.size()]));
      }
      if (w + ahead < windows) {
        issue(w + ahead);
      }
    }
    parameters_.synchronize();
    found.parameter_bytes_per_second =
        static_cast<double>(windows) * static_cast<double>(chunk_bytes) / seconds_since(begin);
    return found;
  }

  /// Activations at random times, on average \p mean_gap_s after the activation before, while
  /// always \p depth copies of \p piece_bytes are queued on the parameters' stream. While an
  /// activation is under way, at most \ref most_behind bytes of them are queued, so the activation
  /// always ends.
  ///
  /// With \p yields each piece waits for an event that another stream records after the piece
  /// before: for a moment the stream has nothing to copy, and others get their turn.
  Latencies at_random(double mean_gap_s, Bytes piece_bytes, std::size_t depth, bool yields) {
    std::mt19937 random(20260101);
    std::uniform_real_distribution<double> gap(0.5 * mean_gap_s, 1.5 * mean_gap_s);
    auto hop = backend_.make_stream(id, LaneKind::compute);
    std::vector<Event> done;
    std::vector<Event> seen;
    for (std::size_t i = 0; i < depth; ++i) {
      done.push_back(backend_.make_event(id));
      seen.push_back(backend_.make_event(id));
    }
    auto start = backend_.make_event(id);
    auto end = backend_.make_event(id);
    std::size_t queued = 0;
    std::size_t copied = 0;
    auto const top_up = [&](std::size_t most) {
      while (copied < queued && done[copied % depth].ready()) {
        ++copied;
      }
      for (; queued - copied < depth && queued < most; ++queued) {
        copy_parameters(queued * piece_bytes, piece_bytes, piece_bytes);
        parameters_.record(done[queued % depth]);
        if (yields) {
          hop.wait(done[queued % depth]);
          hop.record(seen[queued % depth]);
          parameters_.wait(seen[queued % depth]);
        }
      }
    };
    Latencies found;
    auto const begin = Clock::now();
    auto next_s = gap(random);
    for (std::size_t i = 0; i < samples; ++i) {
      while (seconds_since(begin) < next_s) {
        top_up(queued + depth);
      }
      auto const most = queued + most_behind / piece_bytes;
      auto const due = Clock::now();
      activations_.record(start);
      copy_activation(i);
      activations_.record(end);
      while (!end.ready()) {
        top_up(most);
      }
      found.seconds.push_back(seconds_since(due));
      found.device_seconds.push_back(end.seconds_since(start));
      next_s = seconds_since(begin) + gap(random);
    }
    found.parameter_bytes_per_second =
        static_cast<double>(copied * piece_bytes) / seconds_since(begin);
    parameters_.synchronize();
    return found;
  }

  /// Whether the device holds exactly what was sent, \p parameters bytes of the parameters.
  bool is_right(Bytes parameters) {
    auto const bytes = places * activation_bytes + std::min(parameters, parameter_bytes);
    std::memset(back_.bytes().data(), 0, back_.bytes().size());
    activations_.copy(back_.bytes().first(bytes), source(device_.bytes().subspan(0, bytes)));
    activations_.synchronize();
    return equal(host_.bytes().first(bytes), back_.bytes().first(bytes));
  }

 private:
  static constexpr Bytes total = places * activation_bytes + parameter_bytes;
  static constexpr DeviceId id{0};

  void copy(Stream& stream, Bytes at, Bytes bytes) {
    stream.copy(device_.bytes().subspan(at, bytes), source(host_.bytes().subspan(at, bytes)));
  }
  void copy_activation(std::size_t i) {
    copy(activations_, i % places * activation_bytes, activation_bytes);
  }
  /// Bytes from the endless repetition of all parameters.
  void copy_parameters(Bytes first, Bytes bytes, Bytes piece_bytes) {
    for (auto const last = first + bytes; first < last;) {
      auto const at = first % parameter_bytes;
      auto const now = std::min({piece_bytes, last - first, parameter_bytes - at});
      copy(parameters_, places * activation_bytes + at, now);
      first += now;
    }
  }

  cu::CudaBackend backend_;
  cu::CudaBackend::HostSlab host_;
  cu::CudaBackend::HostSlab back_;
  cu::CudaBackend::DeviceSlab device_;
  Stream activations_;
  Stream parameters_;
};

constexpr double gap_s = 8e-3;  // between activations, or a window
constexpr Bytes piece_of_chunk = 8_MiB;

void report(benchmark::State& state,
            Latencies const& found,
            Latencies const& idle,
            double link_bytes_per_second) {
  state.SetIterationTime(found.median());
  state.counters["median_us"] = 1e6 * found.median();
  state.counters["p99_us"] = 1e6 * found.p99();
  state.counters["device_median_us"] = 1e6 * quantile(found.device_seconds, 0.5);
  state.counters["median_x"] = found.median() / idle.median();
  state.counters["p99_x"] = found.p99() / idle.median();
  state.counters["link_GBps"] = 1e-9 * link_bytes_per_second;
  state.counters["kept"] = found.parameter_bytes_per_second / link_bytes_per_second;
}

/// Compares \p experiment(uploads, link's bytes a second) with an idle link.
template <class F>
void compare(benchmark::State& state, Bytes parameters, F&& experiment) {
  for (auto _ : state) {
    Uploads uploads;
    auto const rate = uploads.link_bytes_per_second();
    auto const idle = uploads.in_windows(0.1 * gap_s, 0, piece_of_chunk);
    auto const found = experiment(uploads, rate, idle);
    if (!uploads.is_right(parameters)) {
      state.SkipWithError("the copy differs from its source");
      return;
    }
    report(state, found, idle, rate);
  }
}

void idle(benchmark::State& state) {
  compare(state, 0, [](Uploads&, double, Latencies const& found) { return found; });
}

void planned(benchmark::State& state) {
  auto const used = static_cast<double>(state.range(0)) / 100;  // of the link, by both together
  compare(state, Uploads::parameter_bytes, [&](Uploads& uploads, double rate, Latencies const&) {
    auto const window_bytes = static_cast<Bytes>(used * gap_s * rate);
    auto const chunk = window_bytes - std::min(window_bytes, activation_bytes);
    return uploads.in_windows(gap_s, align_up(chunk, 4096), piece_of_chunk);
  });
}

void arrivals(benchmark::State& state) {
  auto const piece = static_cast<Bytes>(state.range(0)) * 1_MiB;
  auto const depth = static_cast<std::size_t>(state.range(1));
  auto const yields = state.range(2) != 0;
  compare(state, Uploads::parameter_bytes, [&](Uploads& uploads, double, Latencies const&) {
    return uploads.at_random(gap_s, piece, depth, yields);
  });
}

BENCHMARK(link)
    ->Name("transfer/link")
    ->Apply(link_sizes)
    ->Iterations(20)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(idle)
    ->Name("transfer/activation/idle")
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(planned)
    ->Name("transfer/activation/planned")
    ->ArgName("link_used_percent")
    ->Arg(90)
    ->Arg(95)
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(arrivals)
    ->Name("transfer/activation/unplanned")
    ->ArgNames({"MiB", "queued", "yields"})
    ->Args({512, 4, 0})
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(arrivals)
    ->Name("transfer/activation/arrivals")
    ->ArgNames({"MiB", "queued", "yields"})
    ->ArgsProduct({{8}, {2, 16}, {0}})
    ->ArgsProduct({{1, 2, 4, 8, 16, 32}, {1}, {0}})
    ->ArgsProduct({{1, 2, 4, 8, 16, 32}, {16}, {1}})
    ->Iterations(1)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
