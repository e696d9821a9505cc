// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/event.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <support/cuda_gate.hpp>

#include <doctest/doctest.h>

#include <type_traits>
#include <utility>

namespace cu = roundpipe::cu;

static_assert(!std::is_copy_constructible_v<cu::Stream> && !std::is_copy_assignable_v<cu::Stream>);
static_assert(std::is_nothrow_move_constructible_v<cu::Stream>);
static_assert(std::is_nothrow_move_assignable_v<cu::Stream>);
static_assert(std::is_convertible_v<cu::Stream const&, ::cuda::stream_ref>);
static_assert(!std::is_convertible_v<int, cu::Stream>);

TEST_CASE("a new stream is idle and does not wait for the default stream") {
  cu::Stream const stream;
  CHECK(stream.is_done());
  stream.sync();
  unsigned flags = 0;
  cu::check(cudaStreamGetFlags(stream.get(), &flags), "cudaStreamGetFlags");
  CHECK(flags == cudaStreamNonBlocking);
  CHECK(::cuda::stream_ref(stream).get() == stream.get());
}

TEST_CASE("a stream has the requested priority, within the range of the device") {
  auto const range = cu::Stream::priority_range();
  CHECK(range.highest <= range.lowest);
  CHECK(cu::Stream().priority() == cu::Stream::default_priority);
  CHECK(cu::Stream(range.highest).priority() == range.highest);
  CHECK(cu::Stream(range.lowest).priority() == range.lowest);
  CHECK(cu::Stream(range.highest - 1).priority() == range.highest);
}

TEST_CASE("a stream waits for an event of another stream") {
  cu::Stream first;
  cu::Stream second;
  roundpipe::test::Gate gate;
  gate.close(first);
  {
    cu::Event event;  // destroyed before it is reached; the wait still holds
    event.record(first);
    second.wait(event);
  }
  CHECK_FALSE(first.is_done());
  CHECK_FALSE(second.is_done());
  CHECK(cudaPeekAtLastError() == cudaSuccess);
  gate.open();
  second.sync();
  CHECK(second.is_done());
  CHECK(first.is_done());
}

TEST_CASE("a move transfers the stream") {
  cu::Stream first;
  cudaStream_t const handle = first.get();
  cu::Stream second = std::move(first);
  CHECK(second.get() == handle);
  cu::Stream third;
  third = std::move(second);
  CHECK(third.get() == handle);
  third.sync();
}
