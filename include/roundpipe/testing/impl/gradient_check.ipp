// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/testing/gradient_check.hpp>
#include <roundpipe/testing/layer_layout.hpp>
#include <roundpipe/testing/layer_values.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::testing::detail {

/// The buffer of \p role for the same tensor as \p other, which is number n of its own role.
[[nodiscard]] ROUNDPIPE_INLINE Buffer const& partner(LayerLayout const& layout,
                                                     Buffer const& other,
                                                     Role role) {
  auto const& buffers = layout.buffers();
  auto const has = [](Role r) { return [r](Buffer const& b) { return b.role == r; }; };
  auto const number = &other - &*std::find_if(buffers.begin(), buffers.end(), has(other.role));
  return *(std::find_if(buffers.begin(), buffers.end(), has(role)) + number);
}

/// How the objective moves from one image to another.
struct Movement {
  double by = 0;
  /// What independent roundings of the outputs that moved add up to, and of the largest that did
  /// not: its rounding may hide a movement.
  double error = 0;
};

[[nodiscard]] ROUNDPIPE_INLINE Movement movement(LayerLayout const& layout,
                                                 Image const& from,
                                                 Image const& to,
                                                 double unit) {
  Movement result;
  double squares = 0;
  double hidden = 0;
  auto const add = [&](double weight, double a, double b) {
    result.by += weight * (b - a);
    auto const square = std::pow(weight * unit * (std::abs(a) + std::abs(b)) / 2, 2);
    if (a != b) {
      squares += square;
    } else {
      hidden = std::max(hidden, square);
    }
  };
  for (auto const& buffer : layout.buffers()) {
    if (buffer.role == Role::loss) {
      add(1, element(from, buffer, 0), element(to, buffer, 0));
    }
    if (buffer.role != Role::output || !is_floating(buffer.dtype)) {
      continue;
    }
    auto const& weights = partner(layout, buffer, Role::output_gradient);
    for (std::size_t i = 0; i < buffer.shape.size(); ++i) {
      add(element(from, weights, i), element(from, buffer, i), element(to, buffer, i));
    }
  }
  result.error = std::sqrt(squares + hidden);
  return result;
}

/// The derivative by one element.
struct Quotient {
  std::size_t i = 0;
  double value = 0;
  double error = 0;
};

/// Takes quotients by elements of one buffer.
class Differences {
 public:
  Differences(LayerLayout const& layout,
              Image& image,
              double unit,
              std::function<Image(Image)> const& forward)
      : layout_(layout), image_(image), unit_(unit), forward_(forward) {}

  [[nodiscard]] Quotient by(Buffer const& buffer, std::size_t i) {
    auto const step = std::pow(unit_, 1.0 / 3);
    auto const narrow = central(buffer, i, step);
    auto const wide = central(buffer, i, 2 * step);
    // The formula's error grows with the square of the step: the difference is three times that of
    // the narrow quotient.
    return {i, narrow.value, 8 * narrow.error + std::abs(wide.value - narrow.value)};
  }

 private:
  /// With the error of roundings alone.
  [[nodiscard]] Quotient central(Buffer const& buffer, std::size_t i, double step) {
    auto const value = element(image_, buffer, i);
    auto const at = [&](double moved) {
      set_element(image_, buffer, i, moved);
      return std::pair(element(image_, buffer, i), forward_(image_));
    };
    auto const [low, below] = at(value - step);
    auto const [high, above] = at(value + step);
    set_element(image_, buffer, i, value);
    auto const moved = movement(layout_, below, above, unit_);
    return {i, moved.by / (high - low), moved.error / (high - low)};
  }

  LayerLayout const& layout_;
  Image& image_;
  double unit_;
  std::function<Image(Image)> const& forward_;
};

ROUNDPIPE_INLINE std::vector<std::string> differences_of_gradients(
    LayerFacts const& facts,
    LayerCheckOptions const& options,
    LayerLayout const& layout,
    Image image,
    Image const& gradients,
    std::function<Image(Image)> const& forward) {
  auto const unit = unit_of(facts);
  image.resize(layout.only(Role::workspace).offset);
  Differences differences(layout, image, unit, forward);
  std::vector<std::string> findings;
  for (auto const& buffer : layout.buffers()) {
    if (buffer.role != Role::input && buffer.role != Role::parameter) {
      continue;
    }
    auto const& gradient =
        partner(layout,
                buffer,
                buffer.role == Role::input ? Role::input_gradient : Role::parameter_gradient);
    if (!gradient.present) {
      continue;
    }
    auto const size = buffer.shape.size();
    auto const count = std::min(size, options.elements);
    std::vector<Quotient> quotients;
    double squares = 0;
    for (std::size_t n = 0; n < count; ++n) {
      quotients.push_back(differences.by(buffer, n * size / count));
      squares += quotients.back().value * quotients.back().value;
    }
    auto const typical = count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0.0;
    std::size_t wrong = 0;
    std::string first;
    for (auto const& q : quotients) {
      auto const got = element(gradients, gradient, q.i);
      auto const rounding = std::max(16 * unit, 1e-6) * std::max(typical, std::abs(q.value));
      auto const tolerance = options.tolerance * (q.error + rounding);
      if (!(std::abs(got - q.value) <= tolerance) && wrong++ == 0) {
        first = place(gradient, q.i) + " is " + number(got) + ", want " + number(q.value) +
                " within " + number(tolerance) + ", as finite differences say";
      }
    }
    if (wrong > 0) {
      findings.push_back(first + "; wrong are " + std::to_string(wrong) + " of " +
                         std::to_string(count) + " elements");
    }
  }
  return findings;
}

}  // namespace roundpipe::testing::detail
