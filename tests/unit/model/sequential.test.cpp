// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/sequential.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

namespace sequential_test {

namespace {

using namespace roundpipe;

struct First {
  int value = 0;
};
struct Second {
  std::string value;
};

struct Describe {
  std::string operator()(First const& layer) const {
    return "first " + std::to_string(layer.value);
  }
  std::string operator()(Second const& layer) const { return "second " + layer.value; }
};

template <class Model>
std::vector<std::string> describe_all(Model const& model) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < model.layer_count(); ++i) {
    result.push_back(model.visit(LayerId(i), Describe{}));
  }
  return result;
}

}  // namespace

TEST_CASE("the number of a layer leads to its run") {
  Sequential const model{First{1}, repeat(3, Second{"b"}), First{2}, repeat(2, First{3})};
  CHECK(model.layer_count() == 7);
  CHECK(describe_all(model) ==
        std::vector<std::string>{
            "first 1", "second b", "second b", "second b", "first 2", "first 3", "first 3"});
  static_assert(std::is_same_v<decltype(model), Sequential<First, Second, First, First> const>,
                "a run's type does not depend on how often it is repeated");
}

TEST_CASE("a run may be empty, a model may not") {
  CHECK(describe_all(Sequential{repeat(0, First{1}), Second{"x"}, repeat(0, First{2})}) ==
        std::vector<std::string>{"second x"});
  CHECK(describe_all(Sequential{First{1}, repeat(0, Second{"x"}), First{2}}) ==
        std::vector<std::string>{"first 1", "first 2"});
  CHECK(test::error_of([] { Sequential{repeat(0, First{})}; }).code() == Errc::invalid_argument);
}

TEST_CASE("a single layer is a model") {
  CHECK(describe_all(Sequential{First{4}}) == std::vector<std::string>{"first 4"});
}

TEST_CASE("visiting passes references, in both directions") {
  Sequential const model{First{1}, repeat(2, First{5})};
  int calls = 0;
  auto const count = [&calls](First const&) { ++calls; };
  model.visit(LayerId(2), count);
  model.visit(LayerId(0), [&calls](auto const&) { ++calls; });
  CHECK(calls == 2);
  auto const& same =
      model.visit(LayerId(1), [](First const& layer) -> First const& { return layer; });
  CHECK(same.value == 5);
  CHECK(&same ==
        &model.visit(LayerId(2), [](First const& layer) -> First const& { return layer; }));
}

TEST_CASE("a copied model has its own layers") {
  auto const copy = [] {
    Sequential const model{First{1}, Second{std::string(100, 'x')}};
    return model;
  }();
  CHECK(describe_all(copy).back().size() == 107);
}

}  // namespace sequential_test
