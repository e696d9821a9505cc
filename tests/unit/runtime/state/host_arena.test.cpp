// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/state/host_arena.hpp>

#include <roundpipe/backend/host_backend.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>

namespace host_arena_test {

using namespace roundpipe;

TEST_CASE("pieces are aligned, disjoint, and share the expected slabs") {
  HostBackend backend{HostBackendOptions{}};
  HostArena<HostBackend> arena(backend, 4 * 512);
  std::set<std::byte*> ends;
  std::byte* end = nullptr;
  for (int i = 0; i < 4; ++i) {
    auto const piece = arena.take(300);
    CHECK(piece.size() == 300);
    CHECK(reinterpret_cast<std::uintptr_t>(piece.data()) % 256 == 0);
    CHECK((end == nullptr || piece.data() == end));
    end = piece.data() + 512;
  }
  CHECK(arena.bytes() == 4 * 512);
  CHECK(arena.take(1).size() == 1);
  CHECK(arena.bytes() == 5 * 512 - 256);
}

TEST_CASE("no piece straddles two slabs") {
  HostBackend backend{HostBackendOptions{}};
  HostArena<HostBackend> arena(backend, 3 * 768 + 2048, 1024);
  for (int i = 0; i < 3; ++i) {
    CHECK(arena.take(768).size() == 768);
  }
  CHECK(arena.take(2048).size() == 2048);  // larger than a slab: it gets its own
  CHECK(arena.bytes() == 3 * 1024 + 2048);
}

}  // namespace host_arena_test
