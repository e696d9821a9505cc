// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Compares the gradients of a layer with finite differences.

#include <roundpipe/config.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/testing/layer_layout.hpp>
#include <roundpipe/testing/layer_values.hpp>

#include <functional>
#include <string>
#include <vector>

namespace roundpipe::testing::detail {

/// Compares each gradient with central differences of the objective: the loss, plus the sum of all
/// outputs times their gradients.
///
/// A step is the cube root of the \ref unit_of the layer, so that the error of the quotient's
/// formula, about the step's square, and that of rounded outputs, about the unit over the step, are
/// of one size. The tolerance is the change of the quotient when the step doubles, eight times what
/// independent roundings of the outputs that moved, and of the largest that did not, add up to, and
/// 16 units, but at least 1e-6, of the tensor's typical gradient.
/// \param image What the forward finds. \param gradients An image behind the backward.
/// \returns a finding for each tensor whose gradient is wrong.
[[nodiscard]] std::vector<std::string> differences_of_gradients(
    LayerFacts const& facts,
    LayerCheckOptions const& options,
    LayerLayout const& layout,
    Image image,
    Image const& gradients,
    std::function<Image(Image)> const& forward);

}  // namespace roundpipe::testing::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/testing/impl/gradient_check.ipp>
#endif
