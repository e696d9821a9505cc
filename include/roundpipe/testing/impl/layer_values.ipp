// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/testing/layer_layout.hpp>
#include <roundpipe/testing/layer_values.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

namespace roundpipe::testing::detail {

ROUNDPIPE_INLINE double drawn(std::uint32_t name, std::size_t i) {
  auto const word = random_word(RandomKey{.seed = 1, .stream = name}, i);
  auto const magnitude = 0.25 + 0.75 * static_cast<double>(uniform(word));
  return (word & 1U) != 0 ? magnitude : -magnitude;
}

ROUNDPIPE_INLINE Image first_image(LayerLayout const& layout,
                                   LayerFacts const& facts,
                                   LayerCheckOptions const& options,
                                   std::byte unwritten) {
  Image image(layout.bytes(), unwritten);
  std::uint32_t name = 0;
  for (auto const& buffer : layout.buffers()) {
    ++name;
    auto const is_parameter = buffer.role == Role::parameter;
    auto const reads = is_parameter || buffer.role == Role::input ||
                       buffer.role == Role::side_input || buffer.role == Role::output_gradient;
    if (!reads || !buffer.present) {
      continue;
    }
    auto const& shape = buffer.shape;
    // Buffers begin with the parameters, in the order of their table.
    auto const around_one =
        is_parameter && facts.parameters[name - 1].initial.kind == Initial::Kind::ones;
    auto const scale = around_one ? 0.25
                       : is_parameter && shape.rank() > 1
                           ? 1 / std::sqrt(static_cast<double>(shape[shape.rank() - 1]))
                           : 1.0;
    TensorSpec const spec{buffer.label, shape, buffer.dtype};
    for (std::size_t i = 0; i < shape.size(); ++i) {
      set_element(image,
                  buffer,
                  i,
                  is_floating(buffer.dtype) ? (around_one ? 1 : 0) + scale * drawn(name, i)
                                            : static_cast<double>(options.integer(spec, i)));
    }
  }
  return image;
}

ROUNDPIPE_INLINE std::optional<std::size_t> first_difference(Buffer const& in_a,
                                                             Image const& a,
                                                             Buffer const& in_b,
                                                             Image const& b) {
  auto const* const from_a = a.data() + in_a.offset;
  auto const* const end_a = from_a + in_a.bytes();
  auto const at = std::mismatch(from_a, end_a, b.data() + in_b.offset).first;
  if (at == end_a) {
    return std::nullopt;
  }
  return static_cast<Bytes>(at - from_a) / size_of(in_a.dtype);
}

ROUNDPIPE_INLINE bool holds_only(Image const& image,
                                 Buffer const& buffer,
                                 std::size_t i,
                                 std::byte value) {
  auto const size = size_of(buffer.dtype);
  auto const* const first = image.data() + buffer.offset + i * size;
  return std::all_of(first, first + size, [&](std::byte b) { return b == value; });
}

ROUNDPIPE_INLINE std::string place(Buffer const& buffer, std::size_t i) {
  return buffer.name() + "[" + std::to_string(i) + "]";
}

ROUNDPIPE_INLINE std::string number(double value) {
  char text[32];
  static_cast<void>(std::snprintf(text, sizeof text, "%.9g", value));
  return text;
}
ROUNDPIPE_INLINE std::string number(Image const& image, Buffer const& buffer, std::size_t i) {
  return number(element(image, buffer, i));
}

ROUNDPIPE_INLINE double unit_of(LayerFacts const& facts) {
  double unit = 0x1p-53;
  auto const meet = [&](DType type) {
    unit = std::max(unit,
                    type == DType::bf16  ? 0x1p-8
                    : type == DType::f16 ? 0x1p-11
                    : type == DType::f32 ? 0x1p-24
                                         : 0.0);
  };
  for (auto const& parameter : facts.parameters) {
    meet(parameter.tensor.dtype);
  }
  for (auto const* table : {&facts.input, &facts.boundary}) {
    for (auto const& spec : *table) {
      meet(spec.dtype);
    }
  }
  return unit;
}

}  // namespace roundpipe::testing::detail
