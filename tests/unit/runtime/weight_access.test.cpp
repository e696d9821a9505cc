// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/weight_access.hpp>

#include <support/error_of.hpp>
#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace weight_access_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("each parameter is visited once by its name, shared ones too") {
  HostParameters host({.tied = true});
  WeightAccess const weights(host.memory, host.progress);
  std::set<std::string> names;
  std::size_t elements = 0;
  std::size_t visits = 0;
  weights.for_each([&](std::string const& name, Shape const& shape, HostSpan<float const> values) {
    names.insert(name);
    ++visits;
    CHECK(shape.size() == values.size());
    elements += values.size();
  });
  CHECK(names.size() == visits);
  CHECK(elements == host.blocks.parameter_count());
}

TEST_CASE("what is written to a layer's parameter is read there") {
  HostParameters host({.type = DType::bf16});
  WeightAccess const weights(host.memory, host.progress);
  auto const size = host.blocks.blocks[0].specs[0].tensor.shape.size();
  auto const place = weights.find(LayerId(0), 0, size);
  std::vector<float> const written(size, 0.375F);
  weights.write(place, written);
  std::vector<float> read(size);
  weights.read(place, read);
  CHECK(read == written);
  CHECK(host.master(0) == 0.375F);
}

TEST_CASE("parameters that are not there, and other sizes, are refused") {
  HostParameters host({});
  WeightAccess const weights(host.memory, host.progress);
  auto const size = host.blocks.blocks[0].specs[0].tensor.shape.size();
  auto const code_of = [&](LayerId layer, std::size_t index, std::size_t elements) {
    return error_of([&] { (void)weights.find(layer, index, elements); }).code();
  };
  CHECK(code_of(LayerId(0), 0, size + 1) == Errc::invalid_argument);
  CHECK(code_of(LayerId(0), 99, size) == Errc::invalid_argument);
  CHECK(code_of(LayerId(99), 0, size) == Errc::invalid_argument);
  CHECK(code_of(LayerId::none(), 0, size) == Errc::invalid_argument);
}

TEST_CASE("weights of no step are refused") {
  HostParameters host({});
  WeightAccess const weights(host.memory, host.progress);
  weights.require_whole();
  host.progress.begin_block();
  CHECK(error_of([&] { weights.require_whole(); }).code() == Errc::aborted);
}

}  // namespace weight_access_test
