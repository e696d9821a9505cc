// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/lent_memory.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

using roundpipe::HostBytes;
using roundpipe::cu::detail::LentMemory;

TEST_CASE("slabs are cut from the first block that has room, and no byte twice") {
  std::vector<std::byte> a(1000);
  std::vector<std::byte> b(600);
  LentMemory lent({HostBytes(a.data(), a.size()), HostBytes(b.data(), b.size())});
  CHECK(lent.bytes() == 1600);
  auto const place = [&](roundpipe::Bytes bytes) {
    auto const part = lent.take(bytes);
    CHECK(part.size() == bytes);
    return part.data();
  };
  CHECK(place(300) == a.data());
  CHECK(place(600) == b.data());  // a has 488 left, from 512 on
  CHECK(place(488) == a.data() + 512);
  CHECK(lent.take(1).empty());
  CHECK(lent.bytes() == 1600);
}

TEST_CASE("nothing is cut where nothing is lent, or nothing wanted") {
  LentMemory none({});
  CHECK(none.bytes() == 0);
  CHECK(none.take(1).empty());
  std::vector<std::byte> a(10);
  LentMemory some({HostBytes(a.data(), a.size())});
  CHECK(some.take(0).empty());
  CHECK(some.take(10).data() == a.data());
}
