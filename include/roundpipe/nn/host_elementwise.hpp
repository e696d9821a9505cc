// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief SwiGLU and dropout on the host.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/host_linear.hpp>
#include <roundpipe/nn/host_random.hpp>
#include <roundpipe/nn/host_scratch.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace roundpipe::nn::detail {

/// Calls \p f(offset, count) for consecutive parts that fit into the L1 cache.
template <class F>
void for_each_tile(std::size_t size, F&& f) {
  constexpr std::size_t tile = 1024;
  for (std::size_t at = 0; at < size; at += tile) {
    f(at, static_cast<Eigen::Index>(std::min(tile, size - at)));
  }
}

/// y = silu(gate) up.
template <class T>
void run_swiglu(DeviceTensor const& y, DeviceTensor const& gate, DeviceTensor const& up) {
  HostScratch scratch;
  T const* const z = load<T>(scratch, gate);
  T const* const factor = load<T>(scratch, up);
  T* const to = output<T>(scratch, y);
  for_each_tile(gate.size(), [&](std::size_t at, Eigen::Index n) {
    ConstArrayMap<T> const g(z + at, n);
    ArrayMap<T>(to + at, n) = g / (T{1} + (-g).exp()) * ConstArrayMap<T>(factor + at, n);
  });
  store(y, to);
}

/// The gradients of \ref run_swiglu, and its output again. \p dup may be \p dy.
template <class T>
void run_swiglu_backward(DeviceTensor const& dgate,
                         DeviceTensor const& dup,
                         DeviceTensor const& y,
                         DeviceTensor const& dy,
                         DeviceTensor const& gate,
                         DeviceTensor const& up) {
  HostScratch scratch;
  T const* const z = load<T>(scratch, gate);
  T const* const factor = load<T>(scratch, up);
  T const* const gradient = load<T>(scratch, dy);
  T* const to_gate = output<T>(scratch, dgate);
  T* const to_up = output<T>(scratch, dup);
  T* const to = output<T>(scratch, y);
  for_each_tile(gate.size(), [&](std::size_t at, Eigen::Index n) {
    ConstArrayMap<T> const g(z + at, n);
    ConstArrayMap<T> const u(factor + at, n);
    ConstArrayMap<T> const d(gradient + at, n);
    ArrayMap<T> product(to + at, n);
    product = T{1} / (T{1} + (-g).exp());  // the sigmoid at first
    ArrayMap<T>(to_gate + at, n) = d * u * product * (T{1} + g * (T{1} - product));
    product *= g;
    ArrayMap<T>(to_up + at, n) = d * product;
    product *= u;
  });
  store(dgate, to_gate);
  store(dup, to_up);
  store(y, to);
}

/// y = x m / (1 - rate) + addend; m is drawn for each element.
template <class T>
void run_dropout(DeviceTensor const& y,
                 DeviceTensor const& x,
                 DeviceTensor const& addend,
                 DropoutOptions const& options) {
  HostScratch scratch;
  T const* const from = load<T>(scratch, x);
  T const* const other = load_optional<T>(scratch, addend);
  T* const to = output<T>(scratch, y);
  RandomWords words(options.key);
  T* const factors = scratch.take<T>(RandomWords::batch);
  auto const keep = static_cast<T>(1.0 / (1.0 - options.rate));
  // uniform(word) is (word >> 8) / 2^24, so it is below the rate if and only if:
  auto const threshold = static_cast<std::uint32_t>(std::ceil(options.rate * 0x1p24));
  for (std::size_t at = 0; at < x.size(); at += RandomWords::batch) {
    auto const& drawn = words.draw(at);
    for (std::size_t i = 0; i < RandomWords::batch; ++i) {
      auto const below = ((drawn[i] >> 8) - threshold) >> 31;  // 1 or 0, without a branch
      factors[i] = keep * static_cast<T>(static_cast<std::int32_t>(1 - below));
    }
    auto const n = static_cast<Eigen::Index>(std::min(RandomWords::batch, x.size() - at));
    ConstArrayMap<T> const v(from + at, n);
    ConstArrayMap<T> const factor(factors, n);
    ArrayMap<T> result(to + at, n);
    if (other != nullptr) {
      result = v * factor + ConstArrayMap<T>(other + at, n);
    } else {
      result = v * factor;
    }
  }
  store(y, to);
}

}  // namespace roundpipe::nn::detail
