// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/memory/boundary_place.hpp>

#include <roundpipe/model/model_description.hpp>
#include <support/toy_skips.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace boundary_place_test {

namespace {

using namespace roundpipe;
using detail::BoundaryData;
using detail::CarriedSpace;

constexpr Bytes base = 1024;

/// One tensor of 256 bytes for each letter of \p names; capitals are integers.
TensorTable boundary(std::string const& names) {
  TensorTable table;
  for (auto const name : names) {
    table.add({std::string(1, name), {64}, name < 'a' ? DType::i32 : DType::f32});
  }
  return table;
}

/// The offsets of what lies apart at \p place.
std::vector<Bytes> offsets(BoundaryPlace const& place) {
  std::vector<Bytes> result;
  for (auto const& tensor : place.apart) {
    CHECK(tensor.area == (tensor.bytes > 0 ? Area::scratch : Area::none));
    result.push_back(tensor.offset);
  }
  return result;
}

}  // namespace

TEST_CASE("a carried tensor stays, and its place is free when no boundary names it") {
  CarriedSpace space;
  CHECK(space.end() == 0);
  auto const next = [&](BoundaryPlace const& from, std::size_t carried, char const* names) {
    auto const table = boundary(names);
    BoundaryPlace to;
    space.place({from, carried}, to, table, table.size() - 1, BoundaryData::tensors, base);
    return to;
  };
  auto const a = next({}, 0, "xa");
  CHECK(offsets(a) == std::vector<Bytes>{base});
  auto const ba = next(a, 1, "xba");
  CHECK(offsets(ba) == std::vector<Bytes>{base + 256, base});
  auto const still = next(ba, 2, "xba");
  CHECK(offsets(still) == offsets(ba));
  auto const only_a = next(still, 1, "xa");
  CHECK(offsets(only_a) == std::vector<Bytes>{base});
  auto const ca = next(only_a, 1, "xca");
  CHECK(offsets(ca) == std::vector<Bytes>{base + 256, base});  // where b has been
  CHECK(space.end() == base + 512);
  auto const read = next(ca, 0, "xa");  // a tensor of its own, while the layer reads the others
  CHECK(offsets(read) == std::vector<Bytes>{base + 512});
  CHECK(space.end() == base + 768);
}

TEST_CASE("integers have a place, but their gradients have none") {
  for (auto const data : {BoundaryData::tensors, BoundaryData::gradients}) {
    CarriedSpace space;
    BoundaryPlace to;
    space.place({{}, 0}, to, boundary("xaI"), 2, data, base);
    CHECK(offsets(to) == (data == BoundaryData::tensors ? std::vector<Bytes>{base + 256, base}
                                                        : std::vector<Bytes>{base, 0}));
    CHECK(to.in_block(3) == 1);
  }
}

TEST_CASE("a tensor lies apart where the layer before or behind carries it inside of the stage") {
  auto const model = describe(test::toy_skips({}, 1, 1), {.rows = 1, .length = 1});
  // input | mark | dense | fork | dense | fork | join (reads) | dense | join | join | halve | loss
  std::vector<std::size_t> const tensors{0, 1, 1, 2, 2, 3, 3, 3, 2, 1, 0};
  // No gradient goes back through the reader unchanged but that of the outer tensors.
  std::vector<std::size_t> const gradients{0, 1, 1, 2, 2, 2, 3, 3, 2, 1, 0};
  for (std::size_t layer = 0; layer + 1 < model.size(); ++layer) {
    CAPTURE(layer);
    CHECK(detail::tensors_apart(model, layer) == tensors[layer]);
    CHECK(detail::gradients_apart(model, {0, model.size()}, layer) == gradients[layer]);
  }
  // What the first layer of a stage hands back leaves the stage.
  CHECK(detail::gradients_apart(model, {8, 4}, 8) == 1);
}

}  // namespace boundary_place_test
