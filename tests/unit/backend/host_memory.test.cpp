// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_memory.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <support/error_of.hpp>
#include <support/resident_bytes.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace host_memory_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::detail;

constexpr std::byte first{0x5A};

bool all_are(std::byte const* memory, Bytes bytes, std::byte value) {
  return std::all_of(memory, memory + bytes, [&](std::byte b) { return b == value; });
}

/// The error of taking \p bytes; what it takes, it gives back.
Error error_of_taking(HostPool& pool, Bytes bytes) {
  return test::error_of([&] { pool.give_back(pool.take(bytes, first), bytes); });
}

}  // namespace

TEST_CASE("a pool's memory is aligned, and every byte has the wanted value") {
  HostPool pool(std::make_shared<HostStatus>(), "pool", HostPool::unlimited);
  for (Bytes const bytes : {1U, 255U, 256U, 4097U}) {
    for (auto const value : {std::byte{0}, first, std::byte{0xFF}}) {
      auto memory = pool.take(bytes, value);
      CHECK(reinterpret_cast<std::uintptr_t>(memory.get()) % tensor_alignment_bytes == 0);
      CHECK(all_are(memory.get(), bytes, value));
      pool.give_back(std::move(memory), bytes);
    }
  }
}

TEST_CASE("a budget is hard, and what a pool refuses takes nothing from it") {
  HostPool pool(std::make_shared<HostStatus>(), "the pool", 1000);
  auto memory = pool.take(600, first);
  auto const error = error_of_taking(pool, 401);
  CHECK(error.code() == Errc::over_budget);
  CHECK(error.message().starts_with(
      "the pool: 401 B wanted, 400 B left of a budget of 1000 B; raise the budget"));
  auto const rest = pool.take(400, first);
  CHECK(error_of_taking(pool, 1).code() == Errc::over_budget);
  CHECK(pool.take(0, first) == nullptr);
  pool.give_back(std::move(memory), 600);
  CHECK_FALSE(error_of_taking(pool, 600).code());
  CHECK(error_of_taking(pool, 601).code() == Errc::over_budget);
}

TEST_CASE("work that is pending may use returned memory, whose budget is free at once") {
  auto const status = std::make_shared<HostStatus>();
  HostPool pool(status, "pool", 1000);
  status->add_pending();
  auto memory = pool.take(1000, first);
  auto const* const used = memory.get();
  pool.give_back(std::move(memory), 1000);
  auto const other = pool.take(1000, std::byte{0});
  CHECK(all_are(used, 1000, first));
  CHECK(all_are(other.get(), 1000, std::byte{0}));
}

TEST_CASE("a pool frees returned memory when no work is pending" *
          doctest::skip(test::has_shadow_memory)) {
  constexpr auto large = 64_MiB;  // of which the allocator keeps nothing
  auto const status = std::make_shared<HostStatus>();
  HostPool pool(status, "pool", HostPool::unlimited);
  auto const before = test::resident_bytes();
  status->add_pending();
  pool.give_back(pool.take(large, first), large);
  CHECK(test::resident_bytes() >= before + large / 2);
  status->remove_pending();
  auto const next = pool.take(1, first);
  CHECK(test::resident_bytes() < before + large / 2);
}

TEST_CASE("a slab that is assigned to returns its bytes, and takes over the other's") {
  HostBackend const backend({.device_memory_bytes = 3_KiB});
  auto const take = [&](Bytes bytes) { return backend.allocate_device(DeviceId{0}, bytes); };
  auto slab = take(1_KiB);
  auto other = take(2_KiB);
  auto const* const memory = other.bytes().device_pointer();
  slab = std::move(other);
  CHECK(slab.bytes().device_pointer() == memory);
  CHECK(slab.bytes().size() == 2_KiB);
  other = take(1_KiB);
  CHECK(test::error_of([&] { (void)take(1); }).code() == Errc::over_budget);
}

}  // namespace host_memory_test
