// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief NCCL between two GPUs, each of which is a rank: a thread of this process. The other group
/// is a loopback.

#include <roundpipe/nccl/nccl_group.hpp>

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/device.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <roundpipe/hosts/gather_parts.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <support/error_of.hpp>
#include <support/group_conformance.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace nccl_group_test {
namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// Calls \p f with the group of each of two ranks, each on a thread and a GPU of its own.
/// \returns what the ranks have thrown.
std::array<std::string, 2> on_two_gpus(NcclOptions const& options,
                                       std::function<void(NcclGroup&)> const& f) {
  LoopbackNetwork network(2);
  std::array<std::string, 2> thrown;
  auto const run = [&](std::size_t rank) {
    try {
      LoopbackGroup other(network, rank);
      auto mine = options;
      mine.device = DeviceId(static_cast<int>(rank));
      NcclGroup group(other, mine);
      f(group);
    } catch (std::exception const& error) {
      thrown[rank] = error.what();
    }
  };
  std::thread second([&] { run(1); });
  run(0);
  second.join();
  return thrown;
}

bool has_two_gpus() {
  if (cu::device_count() >= 2) {
    return true;
  }
  MESSAGE("skipped: NCCL wants a GPU for each rank, and there is one");
  return false;
}

std::array<std::string, 2> const nothing{};

/// Exchanges \p bytes each way, and the other's number of bytes more. \returns whether they are
/// right. \p sent and \p received have room for that.
bool swaps(
    NcclGroup& group, GroupChannel channel, std::size_t bytes, HostBytes sent, HostBytes received) {
  auto const own = group.rank();
  auto const data = group_bytes(bytes + own, own, 1 - own, bytes);
  std::copy(data.begin(), data.end(), sent.begin());
  std::array<ConstHostBytes, 2> mine;
  std::array<HostBytes, 2> theirs;
  mine[1 - own] = sent.first(bytes + own);
  theirs[1 - own] = received.first(bytes + 1 - own);
  group.exchange(channel, mine, theirs);
  return std::ranges::equal(theirs[1 - own], group_bytes(bytes + 1 - own, 1 - own, own, bytes));
}

}  // namespace

TEST_CASE("ranks on GPUs are a group, whatever goes by NCCL") {
  if (!has_two_gpus()) {
    return;
  }
  for (std::size_t const smallest : {std::size_t{0}, std::size_t{300}}) {
    CAPTURE(smallest);
    CHECK(on_two_gpus({.staging_bytes = 1_MiB, .smallest_bytes = smallest}, [&](NcclGroup& group) {
            CHECK(group.smallest_bytes() == smallest);
            CHECK(GroupConformance(group).run(6) == std::vector<std::string>());
          }) == nothing);
  }
}

TEST_CASE("messages of all sizes arrive as they were sent, from pinned memory and from other") {
  if (!has_two_gpus()) {
    return;
  }
  // Pieces of 64 KiB: messages take up to 161 steps, and slots are used again and again.
  CHECK(on_two_gpus({.staging_bytes = 1_MiB, .smallest_bytes = 1}, [](NcclGroup& group) {
          constexpr std::size_t most = (10U << 20U) + 1;
          cu::PinnedMemory const pinned(2 * most + 2);
          std::vector<std::byte> pageable(2 * most + 2);
          for (std::size_t const bytes : {std::size_t{1},
                                          std::size_t{65535},
                                          std::size_t{65536},
                                          std::size_t{8 * 65536},
                                          std::size_t{8 * 65536 + 1},
                                          most - 1}) {
            CAPTURE(bytes);
            for (auto const memory : {pinned.bytes(), HostBytes(pageable)}) {
              CHECK(swaps(group,
                          GroupChannel::gradients,
                          bytes,
                          memory.first(most + 1),
                          memory.subspan(most + 1)));
            }
          }
        }) == nothing);
}

TEST_CASE("two channels exchange at the same time") {
  if (!has_two_gpus()) {
    return;
  }
  CHECK(on_two_gpus({.staging_bytes = 2_MiB, .smallest_bytes = 1_KiB}, [](NcclGroup& group) {
          constexpr std::size_t most = 1U << 20U;
          // Both ranks are in this process, where taking and freeing pinned memory may wait for all
          // devices: so nobody does while a kernel of one rank waits for the other rank.
          std::array<cu::PinnedMemory, 2> const memories{cu::PinnedMemory(2 * most),
                                                         cu::PinnedMemory(2 * most)};
          group.barrier(GroupChannel::control);
          auto const swap =
              [&](GroupChannel channel, std::size_t bytes, cu::PinnedMemory const& memory) {
                bool right = true;
                for (std::size_t i = 0; i < 100; ++i) {
                  right = right && swaps(group,
                                         channel,
                                         i % 3 == 0 ? 10 : bytes + i,
                                         memory.bytes().first(most),
                                         memory.bytes().subspan(most));
                }
                return right;
              };
          bool weights = false;
          std::thread other([&] { weights = swap(GroupChannel::weights, 700'000, memories[0]); });
          CHECK(swap(GroupChannel::gradients, 200'000, memories[1]));
          other.join();
          group.barrier(GroupChannel::control);
          CHECK(weights);
        }) == nothing);
}

TEST_CASE("weights are gathered with the bits of any other group") {
  if (!has_two_gpus()) {
    return;
  }
  auto const part = [](std::size_t rank) { return group_bytes(3'000'000 + rank, rank, 0, 1); };
  CHECK(on_two_gpus({.smallest_bytes = 1}, [&](NcclGroup& group) {
          auto all = part(0);
          auto const second = part(1);
          all.insert(all.end(), second.begin(), second.end());
          auto const expected = all;
          HostBytes const bytes(all);
          std::array const parts{bytes.first(3'000'000), bytes.subspan(3'000'000)};
          std::ranges::fill(parts[1 - group.rank()], std::byte{});
          gather_parts(group, GroupChannel::weights, parts);
          CHECK(all == expected);
        }) == nothing);
}

TEST_CASE("ranks measure from which size on NCCL is faster, and agree") {
  if (!has_two_gpus()) {
    return;
  }
  std::array<std::size_t, 2> smallest{};
  CHECK(on_two_gpus({}, [&](NcclGroup& group) {
          smallest[group.rank()] = group.smallest_bytes();
          std::vector<std::byte> memory(2000);
          CHECK(swaps(group,
                      GroupChannel::control,
                      900,
                      HostBytes(memory).first(1000),
                      HostBytes(memory).subspan(1000)));
        }) == nothing);
  CHECK(smallest[0] == smallest[1]);
  MESSAGE("NCCL is faster from ", smallest[0], " bytes on");
  CHECK(smallest[0] >= 64_KiB);
}

TEST_CASE("a rank that aborts ends the other's exchange on the GPUs, and the streams are free") {
  if (!has_two_gpus()) {
    return;
  }
  for (auto const aborts : {0U, 1U}) {
    CAPTURE(aborts);
    CHECK(on_two_gpus({.staging_bytes = 1_MiB, .smallest_bytes = 1}, [&](NcclGroup& group) {
            cu::PinnedMemory const memory(128_MiB);
            std::atomic<bool> begun{false};
            std::thread other([&] {
              begun.wait(false);
              if (group.rank() == aborts) {
                group.abort("out of patience");
              }
            });
            auto const end = end_of([&] {
              for (;;) {
                begun = true;
                begun.notify_all();
                std::array<ConstHostBytes, 2> mine;
                std::array<HostBytes, 2> theirs;
                mine[1 - group.rank()] = memory.bytes().first(64_MiB);
                theirs[1 - group.rank()] = memory.bytes().subspan(64_MiB);
                group.exchange(GroupChannel::weights, mine, theirs);
              }
            });
            other.join();
            CHECK(end ==
                  "rank " + std::to_string(aborts) + " has ended the group: out of patience");
            CHECK(end_of([&] { group.rethrow(); }) == end);
          }) == nothing);
  }
}

TEST_CASE("an exception that leaves the scope of a group ends the other rank") {
  if (!has_two_gpus()) {
    return;
  }
  auto const thrown = on_two_gpus({.smallest_bytes = 1}, [](NcclGroup& group) {
    if (group.rank() == 1) {
      throw std::runtime_error("no more");
    }
    std::vector<std::byte> memory(2000);
    (void)swaps(group,
                GroupChannel::weights,
                900,
                HostBytes(memory).first(1000),
                HostBytes(memory).subspan(1000));
  });
  CHECK(thrown[0].starts_with(
      "rank 1 has ended the group: an exception has left the scope of its group"));
  CHECK(thrown[1] == "no more");
}

TEST_CASE("options that cannot be right are refused on every rank") {
  if (!has_two_gpus()) {
    return;
  }
  for (auto const& each : on_two_gpus({.staging_bytes = 10_KiB}, [](NcclGroup&) {})) {
    CHECK(each.find("staging for 2 ranks takes at least 64.00 KiB") != std::string::npos);
  }
  LoopbackNetwork network(2);
  std::array<std::string, 2> thrown;
  auto const run = [&](std::size_t rank) {
    LoopbackGroup other(network, rank);
    thrown[rank] =
        error_of([&] {
          NcclGroup group(other,
                          {.device = DeviceId(static_cast<int>(rank)), .smallest_bytes = 1 + rank});
        }).message();
  };
  std::thread second([&] { run(1); });
  run(0);
  second.join();
  for (auto const& each : thrown) {
    CHECK(each.find("rank 1 has other NcclOptions than rank 0") != std::string::npos);
  }
}

TEST_CASE("a group of one rank takes no GPU") {
  LoopbackNetwork network(1);
  LoopbackGroup other(network, 0);
  NcclGroup group(other, {.device = DeviceId(77)});
  CHECK(GroupConformance(group).run(2) == std::vector<std::string>());
  CHECK(group.smallest_bytes() == std::numeric_limits<std::size_t>::max());
}

}  // namespace nccl_group_test
