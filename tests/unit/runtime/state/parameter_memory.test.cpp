// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/state/parameter_memory.hpp>

#include <support/error_of.hpp>
#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace parameter_memory_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("f16 parameters without fp32 weights are refused") {
  CHECK(error_of([] {
          HostParameters({.copies = {.state_type = StateType::declared}, .type = DType::f16});
        }).code() == Errc::invalid_argument);
}

TEST_CASE("versions of the weights share the master copies in turn") {
  HostParameters f({.copies = {.master_copies = 2}});
  CHECK(f.memory.master(BlockId(0), 0).data() == f.memory.master(BlockId(0), 2).data());
  CHECK(f.memory.master(BlockId(0), 0).data() != f.memory.master(BlockId(0), 1).data());
}

TEST_CASE("gradients land where the optimizer reads them, unless they are summed") {
  HostParameters plain({.copies = {.gradient_buffers = 2}});
  for (std::size_t iteration = 1; iteration < 4; ++iteration) {
    auto const block = plain.blocks.uses[0].block;
    CHECK(plain.memory.landing(BlockUseId(0), RoundId(0), iteration).data() ==
          plain.memory.gradient(block, 0, iteration).data);
  }
  CHECK(plain.memory.landing(BlockUseId(0), RoundId(0), 1).data() !=
        plain.memory.landing(BlockUseId(0), RoundId(0), 2).data());
  HostParameters tied({.tied = true});
  auto const block = tied.blocks.uses[0].block;
  CHECK(tied.memory.landing(BlockUseId(0), RoundId(0), 1).data() ==
        tied.memory.sent(block, 0, tied.memory.landing(BlockUseId(0), RoundId(0), 1)).data);
  CHECK(tied.memory.landing(BlockUseId(0), RoundId(0), 1).data() !=
        tied.memory.gradient(block, 0, 1).data);
}

TEST_CASE("written weights are in all copies") {
  for (auto const type : {StateType::fp32, StateType::declared}) {
    HostParameters f({.copies = {.master_copies = 2, .state_type = type}, .type = DType::bf16});
    std::vector<float> values(f.weights(BlockId(0), 0).size(), 0.5F);
    f.memory.write_weights(BlockId(0), 0, values);
    CHECK(f.master(0) == 0.5F);
    CHECK(f.master(1) == 0.5F);
    CHECK(f.weights(BlockId(0), 0) == values);
    f.memory.write_weights(BlockId(0), 0, {values.data(), 1}, 1);  // from an element on
    CHECK(f.weights(BlockId(0), 0) == values);
  }
}

TEST_CASE("what updates work on is each array once") {
  HostParameters f({.copies = {.master_copies = 2, .gradient_buffers = 2, .state_arrays = 3}});
  std::size_t arrays = 0;
  f.memory.for_each_updated_array(BlockId(0), [&](HostArray const& array) {
    CHECK(array.present());
    ++arrays;
  });
  CHECK(arrays == (1 + 2 + 2 + 3) * f.memory.tensors(BlockId(0)));
}

}  // namespace parameter_memory_test
