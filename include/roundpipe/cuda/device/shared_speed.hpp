// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Measures what all devices' copies, and the host's own work, leave each other of the
/// host's memory.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/median.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/device/current_device.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/device/event.hpp>
#include <roundpipe/cuda/device/link_speed.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/system/aligned_memory.hpp>
#include <roundpipe/system/cpu_plan.hpp>
#include <roundpipe/system/cpu_set.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <set>
#include <span>
#include <vector>

namespace roundpipe::cu {

/// What large copies reach while they run both ways, alone and beside the host's work.
struct SharedSpeed {
  LinkSpeed of_one;         ///< Of the first device, while the others rest.
  LinkSpeed of_each;        ///< Of each device, on average, while all of them copy.
  std::size_t devices = 1;  ///< That copied at once.
  /// Of each device, on average, while all of them copy in one direction alone; 0: not measured.
  LinkSpeed of_each_one_way = {};
  double upload_share_beside_work = 1;  ///< Of the rate of all without that work.
  double download_share_beside_work = 1;
  double work_bytes_per_second = 0;  ///< That the host reads and writes meanwhile: it sums.
};

namespace detail {

/// Copies of several devices at once.
class LinksAtOnce {
 public:
  enum class Ways { both, up, down };

  /// Of blocks of \p bytes, \p copies of them each way and time. The host's blocks are as many as
  /// no cache holds. \throws Error when there is no memory for it.
  LinksAtOnce(std::span<DeviceId const> devices, Bytes bytes, std::size_t copies)
      : bytes_(bytes), copies_(copies) {
    for (auto const device : std::set<DeviceId>(devices.begin(), devices.end())) {
      CurrentDevice const current(device);
      links_.emplace_back(device, bytes);
    }
  }

  void start(Ways ways = Ways::both) {
    for (auto& link : links_) {
      CurrentDevice const current(link.device);
      auto* const there = link.there.bytes().device_pointer();
      link.up.begin.record(link.up.stream);
      link.down.begin.record(link.down.stream);
      for (std::size_t i = 0; i < copies_; ++i) {
        if (i == copies_ / 2) {
          link.up.middle.record(link.up.stream);
          link.down.middle.record(link.down.stream);
        }
        auto* const here = link.host.bytes().data() + 2 * bytes_ * (i % host_blocks);
        auto const copy = [&](void* to, void const* from, ::cudaMemcpyKind kind, Way const& way) {
          check(::cudaMemcpyAsync(to, from, bytes_, kind, way.stream.get()), "cudaMemcpyAsync");
        };
        if (ways != Ways::down) {
          copy(there, here, ::cudaMemcpyHostToDevice, link.up);
        }
        if (ways != Ways::up) {
          copy(here + bytes_, there + bytes_, ::cudaMemcpyDeviceToHost, link.down);
        }
      }
      link.up.end.record(link.up.stream);
      link.down.end.record(link.down.stream);
    }
  }

  [[nodiscard]] std::size_t devices() const noexcept { return links_.size(); }

  [[nodiscard]] bool are_done() const {
    return std::all_of(links_.begin(), links_.end(), [](auto const& link) {
      CurrentDevice const current(link.device);
      return link.up.end.is_done() && link.down.end.is_done();
    });
  }

  void wait() const {
    for (auto const& link : links_) {
      CurrentDevice const current(link.device);
      check(::cudaStreamSynchronize(link.up.stream.get()), "cudaStreamSynchronize");
      check(::cudaStreamSynchronize(link.down.stream.get()), "cudaStreamSynchronize");
    }
  }

  /// The rates of each device, on average, in the first half of its copies: those of the other
  /// direction run meanwhile, unless they are more than twice as fast. Only after \ref wait; that
  /// of a direction without copies means nothing.
  [[nodiscard]] LinkSpeed speed() const {
    auto const half =
        static_cast<double>(copies_ / 2 * bytes_) / static_cast<double>(links_.size());
    LinkSpeed mean;
    for (auto const& link : links_) {
      CurrentDevice const current(link.device);
      mean.upload_bytes_per_second += half / link.up.middle.seconds_since(link.up.begin);
      mean.download_bytes_per_second += half / link.down.middle.seconds_since(link.down.begin);
    }
    return mean;
  }

 private:
  struct Way {
    Stream stream;
    Event begin{cudaEventDefault};
    Event middle{cudaEventDefault};
    Event end{cudaEventDefault};
  };
  struct Link {
    /// What downloads read is written first, as initcheck demands.
    Link(DeviceId named, Bytes size)
        : device(named), host(2 * size * host_blocks), there(named, 2 * size) {
      auto* const read = there.bytes().device_pointer() + size;
      check(::cudaMemsetAsync(read, 0, size, down.stream.get()), "cudaMemsetAsync");
    }
    DeviceId device;
    PinnedMemory host;
    DeviceMemory there;
    Way up;
    Way down;
  };

  static constexpr std::size_t host_blocks = 4;  // each way

  Bytes bytes_;
  std::size_t copies_;
  std::deque<Link> links_;
};

/// The medians of what some calls of \p measure return: others use the host's memory, too.
template <std::size_t n>
[[nodiscard]] std::array<double, n> medians(std::function<std::array<double, n>()> const& measure) {
  constexpr std::size_t calls = 5;
  std::array<std::vector<double>, n> rates;
  for (std::size_t call = 0; call < calls; ++call) {
    auto const measured = measure();
    for (std::size_t i = 0; i < n; ++i) {
      rates[i].push_back(measured[i]);
    }
  }
  std::array<double, n> result{};
  for (std::size_t i = 0; i < n; ++i) {
    result[i] = roundpipe::detail::median(rates[i]).value();
  }
  return result;
}

/// Of \p links without other work.
[[nodiscard]] inline LinkSpeed median_speed(LinksAtOnce& links,
                                            LinksAtOnce::Ways ways = LinksAtOnce::Ways::both) {
  auto const [up, down] = medians<2>([&] {
    links.start(ways);
    links.wait();
    auto const speed = links.speed();
    return std::array{speed.upload_bytes_per_second, speed.download_bytes_per_second};
  });
  return {up, down};
}

/// Sums of bf16 gradients, as a pipeline's: by all threads that its optimizer would get.
class GradientSum {
 public:
  explicit GradientSum(std::size_t devices)
      : cpus_(plan_cpus(usable_cpus(), devices, 0)),
        pool_(cpus_.optimizer_threads, cpus_.optimizer) {
    add();  // so that all memory has been touched
  }

  void add() {
    constexpr std::size_t grain = 4096;
    pool_.for_each_part(size, grain, [&](std::size_t begin, std::size_t end) {
      auto const* const landed = landed_.bytes().data() + begin * size_of(DType::bf16);
      auto* const sums = reinterpret_cast<float*>(sums_.bytes().data()) + begin;
      widen({landed, (end - begin) * size_of(DType::bf16)}, DType::bf16, {sums, end - begin}, true);
    });
  }
  /// What one time reads and writes.
  [[nodiscard]] static constexpr double bytes() {
    return static_cast<double>(size * (size_of(DType::bf16) + 2 * sizeof(float)));
  }

 private:
  static constexpr std::size_t size = std::size_t{1} << 27;  // larger than any cache

  CpuPlan cpus_;
  WorkerPool pool_;
  AlignedMemory landed_{size * size_of(DType::bf16)};
  AlignedMemory sums_{size * sizeof(float)};
};

}  // namespace detail

/// Copies blocks of \p bytes both ways, of the first of \p devices and then of all at once, each
/// counted once, of several also one way, and then of all while the host sums gradients. All are
/// medians. Takes one to two seconds, much of it for 1.3 GiB of host memory. The calling thread's
/// current device stays.
/// \throws Error when there is no memory for it.
[[nodiscard]] inline SharedSpeed measure_shared_speed(std::span<DeviceId const> devices,
                                                      Bytes bytes = Bytes{64} << 20) {
  constexpr std::size_t copies = 24;
  detail::LinksAtOnce links(devices, bytes, copies);
  SharedSpeed speed;
  speed.devices = links.devices();
  speed.of_each = detail::median_speed(links);
  speed.of_one = speed.of_each;
  if (links.devices() > 1) {
    using Ways = detail::LinksAtOnce::Ways;
    speed.of_each_one_way = {
        detail::median_speed(links, Ways::up).upload_bytes_per_second,
        detail::median_speed(links, Ways::down).download_bytes_per_second,
    };
    detail::LinksAtOnce first(devices.first(1), bytes, copies);
    speed.of_one = detail::median_speed(first);
  }
  detail::GradientSum sum(devices.size());
  auto const [up, down, work] = detail::medians<3>([&] {
    using Clock = std::chrono::steady_clock;
    double summed = 0;
    auto const begin = Clock::now();
    links.start();
    do {
      sum.add();
      summed += detail::GradientSum::bytes();
    } while (!links.are_done());
    std::chrono::duration<double> const took = Clock::now() - begin;
    links.wait();
    auto const beside = links.speed();
    return std::array{
        beside.upload_bytes_per_second, beside.download_bytes_per_second, summed / took.count()};
  });
  speed.upload_share_beside_work = std::min(1.0, up / speed.of_each.upload_bytes_per_second);
  speed.download_share_beside_work = std::min(1.0, down / speed.of_each.download_bytes_per_second);
  speed.work_bytes_per_second = work;
  return speed;
}

/// Says so in \p properties, of each of the devices. They know the rates of their links one way.
inline void set_shared_speed(std::span<DeviceProperties> properties, SharedSpeed const& speed) {
  auto const up = speed.of_each.upload_bytes_per_second;
  auto const down = speed.of_each.download_bytes_per_second;
  auto const count = static_cast<double>(speed.devices);
  for (auto& device : properties) {
    device.upload_share_both_ways =
        std::min(1.0, speed.of_one.upload_bytes_per_second / device.upload_bytes_per_second);
    device.download_share_both_ways =
        std::min(1.0, speed.of_one.download_bytes_per_second / device.download_bytes_per_second);
    device.host_upload_bytes_per_second = count * speed.of_each_one_way.upload_bytes_per_second;
    device.host_download_bytes_per_second = count * speed.of_each_one_way.download_bytes_per_second;
    device.host_bytes_per_second = count * (up + down);
    device.host_download_weight = down / up;
    device.upload_share_beside_work = speed.upload_share_beside_work;
    device.download_share_beside_work = speed.download_share_beside_work;
    device.host_work_bytes_per_second = speed.work_bytes_per_second;
  }
}

}  // namespace roundpipe::cu
