// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/state/first_values.hpp>

#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

namespace first_values_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("first values depend on the seed and the parameter's place, not on the threads") {
  HostParameters one({.type = DType::bf16});
  HostParameters same({.type = DType::bf16});
  HostParameters other({.updater = {.seed = 2}, .type = DType::bf16});
  WorkerPool pool(3);
  set_first_values(same.memory, 1, pool);
  CHECK(one.weights(BlockId(0), 0) == same.weights(BlockId(0), 0));
  CHECK(one.weights(BlockId(0), 0) != other.weights(BlockId(0), 0));
  CHECK(one.master(0) == static_cast<float>(BFloat16(one.weights(BlockId(0), 0)[0])));
}

}  // namespace first_values_test
