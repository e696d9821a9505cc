// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/model/skip.hpp>

#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/model/model_description.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/toy_skips.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace skip_test {

namespace {

using namespace roundpipe;
using namespace roundpipe::test;

BatchShape const shape{.rows = 2, .length = 3};

/// The names of all boundaries, those of a layer in one text.
template <class M>
std::vector<std::string> boundaries(M const& model) {
  std::vector<std::string> result;
  for (auto const& layer : describe(model, shape).layers) {
    std::string names;
    for (auto const& spec : layer.boundary) {
      names += (names.empty() ? "" : " ") + spec.name;
    }
    result.push_back(names);
  }
  return result;
}

}  // namespace

TEST_CASE("a tensor goes past the layers between the one that makes it and the one that takes it") {
  ToyDense const dense{};
  CHECK(boundaries(Sequential{ToyInput{},
                              skip(fork(dense), repeat(2, dense), ToyScale{}, ToyJoin{}),
                              dense,
                              ToyLoss{}}) == std::vector<std::string>{"hidden",
                                                                      "hidden skip",
                                                                      "hidden skip",
                                                                      "hidden skip",
                                                                      "hidden skip",
                                                                      "hidden",
                                                                      "hidden",
                                                                      ""});
  CHECK(boundaries(Sequential{ToyInput{}, skip(fork(dense), ToyJoin{}), ToyLoss{}}) ==
        std::vector<std::string>{"hidden", "hidden skip", "hidden", ""});
}

TEST_CASE("the first layer of a connection may make the carried tensor itself") {
  CHECK(boundaries(Sequential{ToyInput{}, skip(ToyMark{}, ToyDense{}, ToyHalve{}), ToyLoss{}}) ==
        std::vector<std::string>{"hidden", "hidden mark", "hidden mark", "hidden", ""});
}

TEST_CASE("the tensors of inner connections stand before those of outer ones") {
  CHECK(boundaries(toy_skips({}, 1, 2)) == std::vector<std::string>{"hidden",
                                                                    "hidden mark",
                                                                    "hidden mark",
                                                                    "hidden outer mark",
                                                                    "hidden outer mark",
                                                                    "hidden inner outer mark",
                                                                    "hidden inner outer mark",
                                                                    "hidden inner outer mark",
                                                                    "hidden inner outer mark",
                                                                    "hidden outer mark",
                                                                    "hidden mark",
                                                                    "hidden",
                                                                    ""});
}

TEST_CASE("the layers of a connection count, and repeat, as those of a model do") {
  auto const model = toy_skips({}, 2, 3);
  CHECK(model.layer_count() == 16);
  CHECK(model.run_of(LayerId(2)) == model.run_of(LayerId(3)));
  CHECK(model.run_of(LayerId(3)) != model.run_of(LayerId(4)));
  CHECK(model.run_of(LayerId(8)) == model.run_of(LayerId(10)));
  CHECK(toy_skips({}, 0, 0).layer_count() == 9);
}

TEST_CASE("an error names the layer that takes another tensor than the one that is carried") {
  ToyDense const dense{};
  ToyJoin const wider{.types = {.width = 5}};
  auto const error = error_of([&] {
    (void)describe(Sequential{ToyInput{}, skip(fork(dense), dense, wider), ToyLoss{}}, shape);
  });
  CHECK(error.code() == Errc::boundary_mismatch);
  CHECK(contains(error.message(),
                 "layer 3 (toy join) takes {hidden f32[2, 3, 5], skip f32[2, 3, 5]}, but layer 2 "
                 "(toy dense) hands over {hidden f32[2, 3, 4], skip f32[2, 3, 4]}"));
}

TEST_CASE("an error names the layer that begins a connection with no tensor to carry") {
  ToyDense const dense{};
  auto const error = error_of(
      [&] { (void)describe(Sequential{ToyInput{}, skip(ToyLoss{}, dense, ToyJoin{})}, shape); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(contains(error.message(), "'toy loss' begins a skip connection"));
}

}  // namespace skip_test
