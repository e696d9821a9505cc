// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/actions/parameter_copier.hpp>

#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

namespace parameter_copier_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("when P copies write the master copy, updates leave it unchanged") {
  HostParameters f({.updater = {.writes_masters = false}, .type = DType::bf16});
  auto const before = f.master(0);
  f.land_all(1);
  f.updater.update(BlockId(0), 1, 1);
  CHECK(f.master(0) == before);
  f.copier.copy(BlockId(0));
  CHECK(f.master(0) == static_cast<float>(BFloat16(f.weights(BlockId(0), 0)[0])));
  CHECK(f.master(0) != before);
}

}  // namespace parameter_copier_test
