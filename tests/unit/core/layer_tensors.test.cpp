// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/core/layer_tensors.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace layer_tensors_test {

using namespace roundpipe;
using test::error_of;

TEST_CASE("a tensor is found by its number, and by the name that the layer's table gives it") {
  LayerTables tables;
  tables.name = "block";
  tables.boundary = {{"hidden", {2, 4}, DType::f32}, {"mask", {2}, DType::f32}};
  LayerTensors tensors;
  tensors.tables = &tables;
  tensors.outputs.resize(2);
  tensors.output_gradients.resize(1);
  auto const find = [&](TensorList list, TensorKey const& key) -> DeviceTensor const& {
    return find_tensor(tensors, 3, list, key);
  };
  CHECK(&find(TensorList::output, 1) == &tensors.outputs[1]);
  CHECK(&find(TensorList::output, "mask") == &tensors.outputs[1]);
  CHECK(&find(TensorList::output_gradient, "hidden") == &tensors.output_gradients[0]);
  auto const unknown = error_of([&] { (void)find(TensorList::output, "logits"); });
  CHECK(unknown.code() == Errc::invalid_argument);
  CHECK(unknown.message() ==
        "layer 3 (block) asks for output(\"logits\"), but its table has {hidden, mask}");
  CHECK(error_of([&] { (void)find(TensorList::output, 2); }).code() == Errc::invalid_argument);
  CHECK(error_of([&] { (void)find(TensorList::output_gradient, "mask"); }).code() ==
        Errc::invalid_argument);
  tensors.tables = nullptr;
  auto const nameless = error_of([&] { (void)find(TensorList::output, "hidden"); });
  CHECK(nameless.code() == Errc::invalid_argument);
  CHECK(nameless.message().find("layer 3 is called without") != std::string::npos);
}

}  // namespace layer_tensors_test
