// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/event.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <support/cuda_gate.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace cu = roundpipe::cu;

static_assert(!std::is_copy_constructible_v<cu::Event> && !std::is_copy_assignable_v<cu::Event>);
static_assert(std::is_nothrow_move_constructible_v<cu::Event>);
static_assert(std::is_nothrow_move_assignable_v<cu::Event>);
static_assert(std::is_trivially_copyable_v<cu::EventRef>);
static_assert(std::is_convertible_v<cu::Event const&, cu::EventRef>);
static_assert(!std::is_constructible_v<cu::EventRef, std::nullptr_t>);
static_assert(!std::is_constructible_v<cu::EventRef, int>);

TEST_CASE("an event that was never recorded counts as done") {
  cu::Event const event;
  CHECK(event.is_done());
  event.sync();
}

TEST_CASE("an event is done when its stream has reached it, and not before") {
  cu::Stream stream;
  roundpipe::test::Gate gate;
  gate.close(stream);
  cu::Event event;
  event.record(stream);
  CHECK_FALSE(event.is_done());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  gate.open();
  event.sync();
  CHECK(event.is_done());
  stream.sync();
}

TEST_CASE("a reference names the event that it was made from") {
  cu::Event const first;
  cu::Event const second;
  cu::EventRef const reference = first;
  CHECK(reference.get() == first.get());
  CHECK(reference == cu::EventRef(first));
  CHECK(reference != cu::EventRef(second));
}

TEST_CASE("a move transfers the event and leaves none behind") {
  cu::Event first;
  cudaEvent_t const handle = first.get();
  cu::Event second = std::move(first);
  CHECK(second.get() == handle);
  CHECK(first.get() == nullptr);

  cu::Event third;
  third = std::move(second);
  CHECK(third.get() == handle);
  CHECK(second.get() == nullptr);

  cu::Event& itself = third;
  third = std::move(itself);
  CHECK(third.get() == handle);
}
