// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/policies/priority_transfer_engine.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace priority_transfer_engine_test {

namespace {

using namespace roundpipe::literals;
using roundpipe::Bytes;
using roundpipe::Chunk;
using roundpipe::Piece;
using roundpipe::PriorityTransferEngine;

std::vector<Chunk> chunks(std::vector<Bytes> const& tensors, std::size_t windows) {
  return PriorityTransferEngine{}.chunks(tensors, windows);
}

using Chunks = std::vector<Chunk>;

}  // namespace

TEST_CASE("one large tensor is cut into equal chunks, one for each window") {
  CHECK(chunks({4_MiB}, 4) == Chunks{{{{0, 0_MiB, 1_MiB}}, 0},
                                     {{{0, 1_MiB, 1_MiB}}, 1},
                                     {{{0, 2_MiB, 1_MiB}}, 2},
                                     {{{0, 3_MiB, 1_MiB}}, 3}});
}

TEST_CASE("the largest tensor goes to the least loaded window") {
  // 5 | 3 3 | 2 2 1: the mean of 16 / 3 is 6.
  CHECK(chunks({1_KiB, 2_KiB, 3_KiB, 5_KiB, 3_KiB, 2_KiB}, 3) ==
        Chunks{{{{0, 0, 1_KiB}, {3, 0, 5_KiB}}, 0},
               {{{1, 0, 2_KiB}, {2, 0, 3_KiB}}, 1},
               {{{4, 0, 3_KiB}, {5, 0, 2_KiB}}, 2}});
}

TEST_CASE("only tensors larger than a window are split") {
  // The mean is 4 KiB: tensor 1 is split, and its first two parts fill a window each.
  CHECK(chunks({2_KiB, 9_KiB, 1_KiB}, 3) ==
        Chunks{{{{1, 0, 4_KiB}}, 0},
               {{{1, 4_KiB, 4_KiB}}, 1},
               {{{0, 0, 2_KiB}, {1, 8_KiB, 1_KiB}, {2, 0, 1_KiB}}, 2}});
}

TEST_CASE("neighbouring parts of one tensor in one window are one piece") {
  // Parts of 512, 512 and 176 bytes of tensor 1; the last two share a window.
  CHECK(chunks({200, 1200}, 2) == Chunks{{{{0, 0, 200}, {1, 0, 512}}, 0}, {{{1, 512, 688}}, 1}});
  // The second half of tensor 1 lies where tensor 0 would go on.
  CHECK(chunks({256, 512}, 2) == Chunks{{{{0, 0, 256}, {1, 256, 256}}, 0}, {{{1, 0, 256}}, 1}});
  CHECK(chunks({1000}, 1) == Chunks{{{{0, 0, 1000}}, 0}});
  CHECK(chunks({1000, 3000}, 1) == Chunks{{{{0, 0, 1000}, {1, 0, 3000}}, 0}});
}

TEST_CASE("a tensor of the mean, rounded up, stays whole") {
  CHECK(chunks({600, 601}, 2) == Chunks{{{{1, 0, 601}}, 0}, {{{0, 0, 600}}, 1}});
}

TEST_CASE("no piece is cut below the alignment of tensors") {
  // The mean is 63 bytes; an element must not be cut in two.
  CHECK(
      chunks({1000}, 16) ==
      Chunks{{{{0, 0, 256}}, 0}, {{{0, 256, 256}}, 1}, {{{0, 512, 256}}, 2}, {{{0, 768, 232}}, 3}});
  CHECK(chunks({100, 40}, 8) == Chunks{{{{0, 0, 100}}, 0}, {{{1, 0, 40}}, 1}});
}

TEST_CASE("without bytes there are no chunks") {
  CHECK(chunks({}, 4).empty());
  CHECK(chunks({0, 0}, 4).empty());
  CHECK(chunks({0, 512, 0}, 2) == Chunks{{{{1, 0, 256}}, 0}, {{{1, 256, 256}}, 1}});
}

TEST_CASE("with fewer tensors than windows, the last windows stay empty") {
  CHECK(chunks({200, 100, 150}, 5) ==
        Chunks{{{{0, 0, 200}}, 0}, {{{2, 0, 150}}, 1}, {{{1, 0, 100}}, 2}});
}

TEST_CASE("a single window takes all tensors whole") {
  CHECK(chunks({3_MiB, 5_MiB, 7}, 1) == Chunks{{{{0, 0, 3_MiB}, {1, 0, 5_MiB}, {2, 0, 7}}, 0}});
}

TEST_CASE("zero windows are refused") {
  CHECK_THROWS_AS((void)chunks({1_KiB}, 0), roundpipe::Error);
}

TEST_CASE("by default two activations are in flight; at least one is required") {
  CHECK(PriorityTransferEngine{}.activations_in_flight() == 2);
  CHECK(PriorityTransferEngine{1}.activations_in_flight() == 1);
  CHECK_THROWS_AS(PriorityTransferEngine{0}, roundpipe::Error);
}

}  // namespace priority_transfer_engine_test
