// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The numbers in a layer's buffers: how they begin, how they differ, how they read.

#include <roundpipe/config.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/testing/layer_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace roundpipe::testing {

/// How \ref check_layer calls a layer.
///
/// Floating tensors hold numbers whose magnitude is from 1/4 to 1: a kink at 0, as of ReLU, is
/// farther away than a step. Parameters of several extents are smaller, so that products keep their
/// size; those that begin as ones lie around 1.
struct LayerCheckOptions {
  BatchShape capacity{2, 3};
  BatchShape smaller{1, 2};
  /// Element \p i of an integer tensor that the layer reads. Default: 0 and 1 in turn.
  std::function<std::int64_t(TensorSpec const& tensor, std::size_t i)> integer =
      [](TensorSpec const&, std::size_t i) { return static_cast<std::int64_t>(i % 2); };
  std::size_t elements = 64;  ///< Of each tensor, evenly spread, that finite differences move.
  double tolerance = 1;       ///< A factor of the tolerance of gradients.
};

namespace detail {

/// Number \p i of stream \p name: its magnitude is from 1/4 to 1.
[[nodiscard]] double drawn(std::uint32_t name, std::size_t i);

/// An image in which a layer finds what it reads; all other bytes are \p unwritten.
[[nodiscard]] Image first_image(LayerLayout const& layout,
                                LayerFacts const& facts,
                                LayerCheckOptions const& options,
                                std::byte unwritten);

/// The first element whose bytes differ between two images of a buffer.
[[nodiscard]] std::optional<std::size_t> first_difference(Buffer const& in_a,
                                                          Image const& a,
                                                          Buffer const& in_b,
                                                          Image const& b);

/// Whether all bytes of element \p i of \p buffer are \p value.
[[nodiscard]] bool holds_only(Image const& image,
                              Buffer const& buffer,
                              std::size_t i,
                              std::byte value);

/// "output 'y'[3]".
[[nodiscard]] std::string place(Buffer const& buffer, std::size_t i);
/// \p value with the digits that tell two close numbers apart.
[[nodiscard]] std::string number(double value);
[[nodiscard]] std::string number(Image const& image, Buffer const& buffer, std::size_t i);

/// The largest relative error of one rounding to the coarsest floating type that the layer reads or
/// hands on.
[[nodiscard]] double unit_of(LayerFacts const& facts);

}  // namespace detail

}  // namespace roundpipe::testing

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/testing/impl/layer_values.ipp>
#endif
