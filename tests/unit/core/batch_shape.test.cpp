// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/batch_shape.hpp>

#include <doctest/doctest.h>

#include <cstdint>

namespace batch_shape_test {

namespace {

using roundpipe::BatchShape;

static_assert(BatchShape{} == BatchShape{.rows = 1, .length = 1});
static_assert(BatchShape{4, 2048}.positions() == 8192);
static_assert(BatchShape{1 << 20, 1 << 20}.positions() == std::int64_t{1} << 40);

}  // namespace

TEST_CASE("a micro-batch fits into a capacity when no extent of the capacity is smaller") {
  BatchShape const capacity{.rows = 4, .length = 16};
  CHECK(capacity.fits(capacity));
  CHECK(BatchShape{1, 1}.fits(capacity));
  CHECK(BatchShape{4, 1}.fits(capacity));
  CHECK_FALSE(BatchShape{5, 1}.fits(capacity));
  CHECK_FALSE(BatchShape{1, 17}.fits(capacity));
  CHECK_FALSE(BatchShape{2, 32}.fits(capacity));  // enough positions, but too long
}

TEST_CASE("a micro-batch without rows or positions does not fit into any capacity") {
  BatchShape const capacity{.rows = 4, .length = 16};
  CHECK_FALSE(BatchShape{0, 16}.fits(capacity));
  CHECK_FALSE(BatchShape{4, 0}.fits(capacity));
  CHECK_FALSE(BatchShape{-1, 16}.fits(capacity));
}

}  // namespace batch_shape_test
