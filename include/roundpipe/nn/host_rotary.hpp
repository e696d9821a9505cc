// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Rotary position embedding on the host, with the norm of queries and keys before it.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/host_linear.hpp>
#include <roundpipe/nn/host_norm.hpp>
#include <roundpipe/nn/host_scratch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe::nn::detail {

/// By how much pair \p i of \p half pairs turns from one position to the next.
[[nodiscard]] inline double rotary_frequency(RotaryOptions const& options,
                                             std::int64_t i,
                                             std::int64_t half) {
  auto const& blend = options.blend;
  auto const pair = static_cast<double>(i);
  auto const frequency = std::pow(options.theta, -pair / static_cast<double>(half));
  auto const kept = std::clamp(
      blend.kept + blend.kept_by_pair * pair + blend.kept_by_frequency * frequency, 0.0, 1.0);
  return frequency * (kept + (1 - kept) / blend.factor);
}

/// Cosines and sines of position times frequency, times the amplitude, [length, d/2] each. Each
/// thread keeps its own.
template <class T>
class RotaryTable {
 public:
  /// The calling thread's table for \p options and \p head_dim, with at least \p length positions.
  static RotaryTable const& get(RotaryOptions const& options,
                                std::int64_t head_dim,
                                std::int64_t length) {
    static thread_local RotaryTable table;
    if (!table.is_for(options) || table.half_ != head_dim / 2) {
      table = RotaryTable{};
      table.options_ = options;
      table.half_ = head_dim / 2;
    }
    table.grow(length);
    return table;
  }
  [[nodiscard]] ConstArrayMap<T> cosine(std::int64_t position) const {
    return {cosine_.data() + position * half_, half_};
  }
  [[nodiscard]] ConstArrayMap<T> sine(std::int64_t position) const {
    return {sine_.data() + position * half_, half_};
  }

 private:
  /// The norm's epsilon is no matter of the table.
  [[nodiscard]] bool is_for(RotaryOptions const& options) const {
    return options_.theta == options.theta && options_.blend == options.blend;
  }
  void grow(std::int64_t length) {
    auto const amplitude = options_.blend.amplitude;
    for (; length_ < length; ++length_) {
      for (std::int64_t i = 0; i < half_; ++i) {
        auto const angle = static_cast<double>(length_) * rotary_frequency(options_, i, half_);
        cosine_.push_back(static_cast<T>(amplitude * std::cos(angle)));
        sine_.push_back(static_cast<T>(amplitude * std::sin(angle)));
      }
    }
  }

  RotaryOptions options_;
  std::int64_t half_ = 0;
  std::int64_t length_ = 0;
  std::vector<T> cosine_;
  std::vector<T> sine_;
};

/// Calls \p f(offset, cosines, sines) for each head of each position of a tensor of \p shape.
template <class T, class F>
void for_each_head(Shape const& shape, RotaryOptions const& options, F&& f) {
  auto const length = shape[1];
  auto const heads = shape[2];
  auto const width = shape[3];
  auto const& table = RotaryTable<T>::get(options, width, length);
  for (std::int64_t position = 0; position < shape[0] * length; ++position) {
    auto const cosine = table.cosine(position % length);
    auto const sine = table.sine(position % length);
    for (std::int64_t head = 0; head < heads; ++head) {
      f((position * heads + head) * width, cosine, sine);
    }
  }
}

/// y = rotation of x, or of gain n(x) where there is a gain.
template <class T>
void run_rotary(DeviceTensor const& y,
                DeviceTensor const& x,
                DeviceTensor const& gain,
                RotaryOptions options) {
  HostScratch scratch;
  auto const width = x.shape()[3];
  auto const half = width / 2;
  T const* const from = load<T>(scratch, x);
  T const* const g = load_optional<T>(scratch, gain);
  T* const to = output<T>(scratch, y);
  ArrayMap<T> head(scratch.take<T>(static_cast<std::size_t>(width)), width);  // y may be x
  for_each_head<T>(x.shape(), options, [&](auto at, auto const& cosine, auto const& sine) {
    ConstArrayMap<T> const v(from + at, width);
    if (g != nullptr) {
      head = v * inverse_rms<T>(v, static_cast<T>(options.epsilon)) * ConstArrayMap<T>(g, width);
    } else {
      head = v;
    }
    ArrayMap<T>(to + at, half) = head.head(half) * cosine - head.tail(half) * sine;
    ArrayMap<T>(to + at + half, half) = head.tail(half) * cosine + head.head(half) * sine;
  });
  store(y, to);
}

/// The gradient of \ref run_rotary.
template <class T>
void run_rotary_backward(DeviceTensor const& dx,
                         DeviceTensor const& dgain,
                         DeviceTensor const& dy,
                         DeviceTensor const& x,
                         DeviceTensor const& gain,
                         RotaryOptions options) {
  HostScratch scratch;
  auto const width = dy.shape()[3];
  auto const half = width / 2;
  bool const normed = gain.present();
  T const* const gradient = load<T>(scratch, dy);
  T const* const from = normed ? load<T>(scratch, x) : nullptr;
  T const* const g = load_optional<T>(scratch, gain);
  T* const to = output<T>(scratch, dx);
  GainGradient<T> gain_gradient(scratch, normed ? dgain : absent);
  ArrayMap<T> head(scratch.take<T>(static_cast<std::size_t>(width)), width);  // dx may be dy
  for_each_head<T>(dy.shape(), options, [&](auto at, auto const& cosine, auto const& sine) {
    ConstArrayMap<T> const first(gradient + at, half);
    ConstArrayMap<T> const second(gradient + at + half, half);
    head.head(half) = first * cosine + second * sine;
    head.tail(half) = second * cosine - first * sine;
    ArrayMap<T> result(to + at, width);
    if (normed) {
      result.setZero();
      add_norm_gradient<T>(result.data(),
                           gain_gradient.row(),
                           ConstArrayMap<T>(head.data(), width),
                           ConstArrayMap<T>(from + at, width),
                           ConstArrayMap<T>(g, width),
                           static_cast<T>(options.epsilon));
    } else {
      result = head;
    }
  });
  gain_gradient.add_to_sum(scratch);
  store(dx, to);
}

}  // namespace roundpipe::nn::detail
