// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_task.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace host_task_test {

namespace {

using roundpipe::detail::HostTask;

/// Counts its living copies.
struct Counted {
  explicit Counted(int& n) : count(&n) { ++*count; }
  Counted(Counted const& other) : count(other.count) { ++*count; }
  Counted(Counted&& other) noexcept : count(other.count) { ++*count; }
  Counted& operator=(Counted const&) = delete;
  ~Counted() { --*count; }
  int* count;
};

template <std::size_t padding>
void check_calls_and_destroys() {
  int living = 0;
  int calls = 0;
  {
    HostTask task(
        [counted = Counted(living), &calls, room = std::array<std::byte, padding>{}]() mutable {
          room[padding - 1] = std::byte{1};
          ++calls;
        });
    CHECK(living == 1);
    HostTask other(std::move(task));
    CHECK(living == 1);
    other();
    CHECK(calls == 1);
    task = std::move(other);
    task();
    CHECK(calls == 2);
    std::vector<HostTask> many;
    for (int i = 0; i < 10; ++i) {
      many.emplace_back([counted = Counted(living)] {});
    }
    CHECK(living == 11);
    many.front() = std::move(task);
    CHECK(living == 10);
    many.front()();
    many.front().reset();
    many.front().reset();
    CHECK(living == 9);
  }
  CHECK(living == 0);
  CHECK(calls == 3);
}

}  // namespace

TEST_CASE("a task calls and destroys its callable, small or large") {
  check_calls_and_destroys<1>();
  check_calls_and_destroys<HostTask::inline_bytes - 16>();
  check_calls_and_destroys<HostTask::inline_bytes - 15>();
  check_calls_and_destroys<10000>();
}

TEST_CASE("a task holds move-only callables") {
  int result = 0;
  HostTask task([&result, number = std::make_unique<int>(7)] { result = *number; });
  task();
  CHECK(result == 7);
}

TEST_CASE("a task holds over-aligned callables and callables whose move may throw") {
  struct Throwing {
    Throwing() = default;
    Throwing(Throwing&&) noexcept(false) {}
    void operator()() const {}
  };
  HostTask throwing(Throwing{});
  HostTask moved(std::move(throwing));
  moved();

  struct alignas(64) Wide {
    std::byte bytes[64]{};
    bool* aligned;
    void operator()() const { *aligned = reinterpret_cast<std::size_t>(this) % 64 == 0; }
  };
  bool aligned = false;
  Wide wide;
  wide.aligned = &aligned;
  HostTask task(wide);
  task();
  CHECK(aligned);
}

TEST_CASE("a task passes on exceptions of its callable") {
  HostTask task([] { throw 3; });
  CHECK_THROWS_AS(task(), int);
}

}  // namespace host_task_test
