// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/data/token_batch.hpp>

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/token_documents.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace token_batch_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a batch views the tokens and labels of micro-batches of any extents") {
  TokenBatch memory;
  CHECK(error_of([&] { (void)memory.view(); }).code() == Errc::invalid_argument);
  memory.reset({{2, 3}, {1, 4}});
  REQUIRE(memory.tokens().size() == 10);
  REQUIRE(memory.labels().size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    memory.tokens()[i] = static_cast<std::int32_t>(i);
    memory.labels()[i] = i % 4 == 0 ? ignored_label : static_cast<std::int32_t>(100 + i);
  }
  CHECK(memory.predictions() == 7);
  auto const batch = memory.view();
  CHECK(batch.size() == 2);
  CHECK(batch.shape(0) == BatchShape{2, 3});
  CHECK(batch.shape(1) == BatchShape{1, 4});
  auto const tokens = batch.bytes("tokens", DType::i32);
  auto const labels = batch.bytes("labels", DType::i32);
  CHECK(tokens.size() == 40);
  CHECK(std::memcmp(tokens.data(), memory.tokens().data(), 40) == 0);
  CHECK(std::memcmp(labels.data(), memory.labels().data(), 40) == 0);
  memory.reset({{1, 1}});
  CHECK(memory.tokens().size() == 1);
  CHECK(memory.view().size() == 1);
}

}  // namespace token_batch_test
