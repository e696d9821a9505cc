// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/cuda_backend.hpp>
#include <roundpipe/cuda/cuda_slab.hpp>
#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <support/contains.hpp>
#include <support/cuda_workers.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

using namespace roundpipe;
using test::contains;
using test::d0;
using test::d1;
using test::error_of;
using test::two_workers;

TEST_CASE("the budget of a device is a limit, however much memory the card has") {
  cu::CudaBackend backend(two_workers());
  {
    auto slab = backend.allocate_device(d0, 40_MiB);
    CHECK(slab.bytes().size() == 40_MiB);
    CHECK(reinterpret_cast<std::uintptr_t>(slab.bytes().device_pointer()) % 256 == 0);
    auto const error = error_of([&] { (void)backend.allocate_device(d0, 30_MiB); });
    CHECK(error.code() == Errc::over_budget);
    CHECK(contains(error.what(), "24.00 MiB left of a budget of 64.00 MiB"));
    auto const other = backend.allocate_device(d1, 30_MiB);
    auto const moved = std::move(slab);
    CHECK(moved.bytes().size() == 40_MiB);
  }
  CHECK(backend.allocate_device(d0, 64_MiB).bytes().size() == 64_MiB);
}

TEST_CASE("slabs come from the caller's pinned memory while some is left") {
  cu::PinnedMemory mine(1_MiB);
  std::ranges::fill(mine.bytes(), std::byte{0xFF});
  auto options = two_workers();
  options.pinned = {mine.bytes()};
  cu::CudaBackend backend(options);
  auto const first = backend.allocate_host(1000);
  auto const second = backend.allocate_host(1_MiB - 1024);
  auto const third = backend.allocate_host(1);
  CHECK(first.bytes().data() == mine.bytes().data());
  CHECK(second.bytes().data() == mine.bytes().data() + 1024);
  for (auto const& slab : {first.bytes(), second.bytes()}) {
    CHECK(std::ranges::all_of(slab, [](std::byte b) { return b == std::byte{}; }));
  }
  CHECK((third.bytes().data() < mine.bytes().data() ||
         third.bytes().data() >= mine.bytes().data() + mine.bytes().size()));
}

TEST_CASE("a slab that is replaced gives its memory back") {
  cu::CudaBackend backend(two_workers());
  auto slab = backend.allocate_device(d0, 20_MiB);
  slab = backend.allocate_device(d0, 44_MiB);
  CHECK(slab.bytes().size() == 44_MiB);
  CHECK(backend.allocate_device(d0, 20_MiB).bytes().size() == 20_MiB);
  slab = backend.allocate_device(d1, 1_MiB);
  CHECK(backend.allocate_device(d0, 64_MiB).bytes().size() == 64_MiB);

  auto host = backend.allocate_host(1000);
  auto* const address = host.bytes().data();
  auto const moved = std::move(host);
  CHECK(moved.bytes().data() == address);
  CHECK(moved.bytes().size() == 1000);
}
