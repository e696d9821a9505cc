// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/weights_digest.hpp>

#include <roundpipe/core/tensor.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weights_digest_test {

namespace {

using namespace roundpipe;

/// Shows the given tensors.
struct Weights {
  std::vector<std::vector<float>> tensors;
  template <class F>
  void for_each_parameter(F&& f) const {
    for (auto const& tensor : tensors) {
      f(std::string("name"), Shape{}, HostSpan<float const>(tensor));
    }
  }
};

std::uint64_t digest_of(std::vector<std::vector<float>> tensors) {
  Weights const weights{std::move(tensors)};
  return weights_digest(weights);
}

}  // namespace

TEST_CASE("the digest sees every bit of every weight in order, not how they are cut") {
  auto const digest = digest_of({{1, 2}, {3}});
  CHECK(digest == digest_of({{1, 2, 3}}));
  CHECK(digest != digest_of({{2, 1}, {3}}));
  CHECK(digest != digest_of({{1, 2}}));
  CHECK(digest != digest_of({{1, 2}, {3.0000002F}}));
  CHECK(digest_of({{0.0F}}) != digest_of({{-0.0F}}));
}

}  // namespace weights_digest_test
