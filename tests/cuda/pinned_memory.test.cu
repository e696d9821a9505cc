// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/pinned_memory.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

using namespace roundpipe;
using test::contains;
using test::error_of;

TEST_CASE("pinned memory is zeroed, begins at huge pages, and moves as a whole") {
  cu::PinnedMemory memory(5_MiB + 3);
  CHECK(memory.bytes().size() == 5_MiB + 3);
  CHECK(reinterpret_cast<std::uintptr_t>(memory.bytes().data()) % 2_MiB == 0);
  bool zero = true;
  for (auto const byte : memory.bytes()) {
    zero = zero && byte == std::byte{0};
  }
  CHECK(zero);
  cudaPointerAttributes attributes{};
  REQUIRE(cudaPointerGetAttributes(&attributes, memory.bytes().data()) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeHost);
  auto* const address = memory.bytes().data();
  cu::PinnedMemory taken(std::move(memory));
  CHECK(memory.bytes().empty());
  CHECK(taken.bytes().data() == address);
  taken = cu::PinnedMemory();
  REQUIRE(cudaPointerGetAttributes(&attributes, address) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
}

TEST_CASE("more host memory than exists is refused, and the error names the size") {
  auto const error = error_of([] { cu::PinnedMemory const memory(Bytes{1} << 60); });
  CHECK(error.code() == std::errc::not_enough_memory);
  CHECK(contains(error.what(), "1048576.00 TiB"));
}
