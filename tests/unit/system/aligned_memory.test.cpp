// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/system/aligned_memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace aligned_memory_test {

using roundpipe::AlignedMemory;

static_assert(!std::is_copy_constructible_v<AlignedMemory>);
static_assert(std::is_nothrow_move_constructible_v<AlignedMemory>);
static_assert(std::is_nothrow_move_assignable_v<AlignedMemory>);

TEST_CASE("memory is aligned and zeroed, and both views show the same bytes") {
  for (std::size_t const size : {1U, 255U, 256U, 10'000U}) {
    AlignedMemory const memory(size);
    auto const bytes = memory.bytes();
    CHECK(bytes.size() == size);
    CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 256 == 0);
    CHECK(memory.device_bytes().device_pointer() == bytes.data());
    CHECK(memory.device_bytes().size() == size);
    auto const is_zero = [](std::byte b) { return b == std::byte{0}; };
    CHECK(std::all_of(bytes.begin(), bytes.end(), is_zero));
    std::fill(bytes.begin(), bytes.end(), std::byte{7});
    memory.clear();
    CHECK(std::all_of(bytes.begin(), bytes.end(), is_zero));
  }
}

TEST_CASE("memory that others have used before is zeroed, too") {
  for (int use = 0; use < 10; ++use) {  // allocators hand out what was freed last
    AlignedMemory const memory(1000);
    auto const bytes = memory.bytes();
    CHECK(std::count(bytes.begin(), bytes.end(), std::byte{0}) == 1000);
    std::fill(bytes.begin(), bytes.end(), std::byte{7});
  }
}

TEST_CASE("zero bytes are no memory") {
  AlignedMemory const none;
  AlignedMemory const empty(0);
  CHECK(none.bytes().data() == nullptr);
  CHECK(empty.bytes().empty());
  empty.clear();
}

TEST_CASE("a moved-from block is empty, and nothing is lost") {
  AlignedMemory first(10);
  auto* const data = first.bytes().data();
  AlignedMemory second(std::move(first));
  CHECK(second.bytes().data() == data);
  CHECK(first.bytes().empty());  // NOLINT(bugprone-use-after-move)
  AlignedMemory third(20);
  third = std::move(second);
  CHECK(third.bytes().size() == 10);
  CHECK(second.bytes().empty());  // NOLINT(bugprone-use-after-move)
  auto& same = third;
  third = std::move(same);
  CHECK(third.bytes().data() == data);
}

}  // namespace aligned_memory_test
