// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/parameter.hpp>

#include <doctest/doctest.h>

namespace parameter_test {

namespace {

using roundpipe::DecayGroup;
using roundpipe::DType;
using roundpipe::Initial;
using roundpipe::ParameterTable;

static_assert(Initial::zeros().kind == Initial::Kind::zeros);
static_assert(Initial::ones().kind == Initial::Kind::ones);
static_assert(Initial::normal(0.02F).kind == Initial::Kind::normal);
static_assert(Initial::normal(0.02F).deviation == 0.02F);

}  // namespace

TEST_CASE("by default a parameter starts at zero, decays, is trained and is not shared") {
  ParameterTable table(2);
  table[0].tensor = {"weight", {4, 8}, DType::bf16};
  table[1] = {{"gain", {8}}, Initial::ones(), DecayGroup::exempt, "gain"};
  CHECK(table[0].initial.kind == Initial::Kind::zeros);
  CHECK(table[0].decay == DecayGroup::decayed);
  CHECK(table[0].sharing_key.empty());
  CHECK_FALSE(table[0].frozen);
  CHECK(table[0].tensor.bytes() == 64);
  CHECK(table[1].sharing_key == "gain");
  CHECK(table[1].tensor.dtype == DType::f32);
  CHECK(table[1].decay == DecayGroup::exempt);
}

}  // namespace parameter_test
