// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A transformer block in plain loops over doubles, written from the papers and the
/// conventions of common checkpoints. It shares no code with the library's block.

#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace roundpipe::test {

using Numbers = std::vector<double>;

/// The sizes of the reference block.
struct ReferenceBlock {
  std::size_t rows, length, hidden, heads, kv_heads, head_dim, intermediate;
  double theta, epsilon;
  bool query_key_norm;
  std::size_t window;  ///< 0: none.
  std::map<std::string, Numbers> weights;
  /// A pair's frequency as a multiple of theta^(-2i/d), which is its second argument; and the
  /// factor of rotated vectors.
  std::function<double(std::size_t i, double frequency)> stretch = [](std::size_t, double) {
    return 1.0;
  };
  double amplitude = 1;
  /// Dropout's factor for element i, on the attention's (0) and on the MLP's (1) branch.
  std::function<double(int branch, std::size_t i)> mask = [](int, std::size_t) { return 1.0; };

  static Numbers norm(Numbers const& x, Numbers const& gain, double epsilon) {
    double square = 0;
    for (auto const v : x) {
      square += v * v;
    }
    Numbers y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y.push_back(x[i] / std::sqrt(square / static_cast<double>(x.size()) + epsilon) * gain[i]);
    }
    return y;
  }
  static Numbers project(Numbers const& x, Numbers const& weight) {
    Numbers y;
    for (std::size_t i = 0; i < weight.size() / x.size(); ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < x.size(); ++j) {
        sum += weight[i * x.size() + j] * x[j];
      }
      y.push_back(sum);
    }
    return y;
  }
  /// By the projection of this name, with its bias if it has one.
  [[nodiscard]] Numbers project(Numbers const& x, std::string const& name) const {
    auto y = project(x, weights.at(name + ".weight"));
    if (auto const bias = weights.find(name + ".bias"); bias != weights.end()) {
      for (std::size_t i = 0; i < y.size(); ++i) {
        y[i] += bias->second[i];
      }
    }
    return y;
  }
  /// x cos(angle) + rotate_half(x) sin(angle), the angles repeated for both halves.
  [[nodiscard]] Numbers rotate(Numbers const& x, std::size_t position) const {
    Numbers y;
    auto const half = x.size() / 2;
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto const exponent = 2.0 * static_cast<double>(i % half) / static_cast<double>(x.size());
      auto const frequency = 1 / std::pow(theta, exponent);
      auto const angle = static_cast<double>(position) * frequency * stretch(i % half, frequency);
      auto const turned = i < half ? -x[i + half] : x[i - half];
      y.push_back(amplitude * (x[i] * std::cos(angle) + turned * std::sin(angle)));
    }
    return y;
  }
  /// The vector of one head, normalized where configured, and rotated.
  [[nodiscard]] Numbers head(Numbers const& projected,
                             std::size_t index,
                             std::size_t position,
                             char const* gain) const {
    auto const first = projected.begin() + static_cast<std::ptrdiff_t>(index * head_dim);
    Numbers x(first, first + static_cast<std::ptrdiff_t>(head_dim));
    return rotate(query_key_norm ? norm(x, weights.at(gain), epsilon) : x, position);
  }

  /// The boundary for the input \p x, both [rows, length, hidden].
  [[nodiscard]] Numbers operator()(Numbers const& x) const {
    Numbers y;
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<Numbers> in;
      std::vector<Numbers> q;
      std::vector<Numbers> k;
      std::vector<Numbers> v;
      for (std::size_t t = 0; t < length; ++t) {
        auto const first = x.begin() + static_cast<std::ptrdiff_t>((row * length + t) * hidden);
        in.emplace_back(first, first + static_cast<std::ptrdiff_t>(hidden));
        auto const h = norm(in.back(), weights.at("input_layernorm.weight"), epsilon);
        q.push_back(project(h, "self_attn.q_proj"));
        k.push_back(project(h, "self_attn.k_proj"));
        v.push_back(project(h, "self_attn.v_proj"));
      }
      for (std::size_t t = 0; t < length; ++t) {
        auto const position = row * length + t;
        auto const middle =
            residual(in[t], project(attend(q, k, v, t), "self_attn.o_proj"), 0, position);
        auto const out = residual(middle, mlp(middle), 1, position);
        y.insert(y.end(), out.begin(), out.end());
      }
    }
    return y;
  }

 private:
  [[nodiscard]] Numbers attend(std::vector<Numbers> const& q,
                               std::vector<Numbers> const& k,
                               std::vector<Numbers> const& v,
                               std::size_t t) const {
    Numbers attended;
    auto const first = window == 0 || t < window ? 0 : t + 1 - window;
    for (std::size_t h = 0; h < heads; ++h) {
      auto const group = h * kv_heads / heads;  // repeat_kv
      auto const query = head(q[t], h, t, "self_attn.q_norm.weight");
      Numbers probability;
      double total = 0;
      for (std::size_t s = first; s <= t; ++s) {
        auto const key = head(k[s], group, s, "self_attn.k_norm.weight");
        double score = 0;
        for (std::size_t i = 0; i < head_dim; ++i) {
          score += query[i] * key[i];
        }
        probability.push_back(std::exp(score / std::sqrt(static_cast<double>(head_dim))));
        total += probability.back();
      }
      for (std::size_t i = 0; i < head_dim; ++i) {
        double sum = 0;
        for (std::size_t s = first; s <= t; ++s) {
          sum += probability[s - first] / total * v[s][group * head_dim + i];
        }
        attended.push_back(sum);
      }
    }
    return attended;
  }
  [[nodiscard]] Numbers mlp(Numbers const& middle) const {
    auto const h = norm(middle, weights.at("post_attention_layernorm.weight"), epsilon);
    auto const gate = project(h, "mlp.gate_proj");
    auto activation = project(h, "mlp.up_proj");
    for (std::size_t i = 0; i < activation.size(); ++i) {
      activation[i] *= gate[i] / (1 + std::exp(-gate[i]));
    }
    return project(activation, "mlp.down_proj");
  }
  [[nodiscard]] Numbers residual(Numbers const& x,
                                 Numbers const& branch,
                                 int number,
                                 std::size_t position) const {
    Numbers y;
    for (std::size_t i = 0; i < x.size(); ++i) {
      y.push_back(x[i] + branch[i] * mask(number, position * hidden + i));
    }
    return y;
  }
};

}  // namespace roundpipe::test
