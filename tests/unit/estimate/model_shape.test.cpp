// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/estimate/model_shape.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace model_shape_test {

namespace {

using namespace roundpipe;
using test::error_of;

std::string refusal(std::function<void(ModelShape&)> const& change) {
  auto shape = model_shape("gpt-oss-20b");
  change(shape);
  auto const error = error_of([&] { check_shape(shape); });
  CHECK(error.code() == Errc::invalid_argument);
  return error.message();
}

}  // namespace

TEST_CASE("known shapes are transformers and can be found by name") {
  std::set<std::string> names;
  for (auto const& shape : known_model_shapes()) {
    CAPTURE(shape.name);
    CHECK_NOTHROW(check_shape(shape));
    CHECK(model_shape(shape.name) == shape);
    names.insert(shape.name);
  }
  CHECK(names == std::set<std::string>{
                     "gpt-oss-20b", "llama3.1-8b", "qwen3-1.7b", "qwen3-235b-a22b", "qwen3-32b"});
}

TEST_CASE("a dense shape has one expert and no router, a mixture of experts routes") {
  auto const dense = model_shape("llama3.1-8b");
  CHECK(dense.experts == 1);
  CHECK(dense.active_experts == 1);
  CHECK_FALSE(dense.routes());
  CHECK(dense.kv_width() == 1024);
  auto const mixture = model_shape("qwen3-235b-a22b");
  CHECK(mixture.routes());
  CHECK(mixture.kv_width() == 512);
}

TEST_CASE("an unknown name is refused with a list of the known names") {
  auto const error = error_of([] { (void)model_shape("llama"); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() ==
        "no model shape is called 'llama'; known are qwen3-1.7b, llama3.1-8b, gpt-oss-20b, "
        "qwen3-32b, qwen3-235b-a22b");
  CHECK(error_of([] { (void)model_shape(""); }).code() == Errc::invalid_argument);
}

TEST_CASE("invalid sizes are refused, and the error names the size") {
  CHECK(refusal([](auto& s) { s.hidden = 0; }) ==
        "model shape 'gpt-oss-20b': hidden is 0, but must be positive and fit 32 bits");
  std::int64_t ModelShape::* const sizes[] = {&ModelShape::hidden,
                                              &ModelShape::heads,
                                              &ModelShape::kv_heads,
                                              &ModelShape::head_dim,
                                              &ModelShape::intermediate,
                                              &ModelShape::layers,
                                              &ModelShape::vocabulary,
                                              &ModelShape::experts,
                                              &ModelShape::active_experts};
  for (auto const size : sizes) {
    for (auto const bad : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 31}) {
      CHECK(refusal([&](auto& s) { s.*size = bad; }).find(" is " + std::to_string(bad) + ",") !=
            std::string::npos);
    }
  }
  CHECK(refusal([](auto& s) { s.kv_heads = 7; }) ==
        "model shape 'gpt-oss-20b': kv_heads = 7 does not divide heads = 64");
  CHECK(refusal([](auto& s) { s.active_experts = 33; }) ==
        "model shape 'gpt-oss-20b': active_experts = 33 is more than experts = 32");
}

}  // namespace model_shape_test
