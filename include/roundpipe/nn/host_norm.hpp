// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Root-mean-square norms on the host.

#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/host_linear.hpp>
#include <roundpipe/nn/host_scratch.hpp>
#include <roundpipe/nn/op_checks.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace roundpipe::nn::detail {

/// 1 / sqrt(mean(x²) + epsilon).
template <class T>
[[nodiscard]] T inverse_rms(ConstArrayMap<T> const& x, T epsilon) {
  return T{1} / std::sqrt(x.square().sum() / static_cast<T>(x.size()) + epsilon);
}

/// Adds the gradient of gain n(x) with respect to x to \p dx, and the one with respect to the gain
/// to \p dgain. Either may be null.
template <class T>
void add_norm_gradient(T* dx,
                       T* dgain,
                       ConstArrayMap<T> const& dy,
                       ConstArrayMap<T> const& x,
                       ConstArrayMap<T> const& gain,
                       T epsilon) {
  auto const r = inverse_rms<T>(x, epsilon);
  if (dgain != nullptr) {
    ArrayMap<T>(dgain, x.size()) += dy * x * r;
  }
  if (dx != nullptr) {
    auto const projection = (dy * gain * x).sum() * r * r * r / static_cast<T>(x.size());
    ArrayMap<T>(dx, x.size()) += dy * gain * r - x * projection;
  }
}

/// A zeroed row that collects a gain's gradient before the row is added to the accumulator. Without
/// an accumulator there is no row.
template <class T>
class GainGradient {
 public:
  GainGradient(HostScratch& scratch, DeviceTensor const& sum) : sum_(sum) {
    if (sum.present()) {
      row_ = scratch.take<T>(sum.size());
      std::fill_n(row_, sum.size(), T{0});
    }
  }
  /// The row, or null.
  [[nodiscard]] T* row() const noexcept { return row_; }
  void add_to_sum(HostScratch& scratch) const {
    if (row_ != nullptr) {
      T* const total = in_out<T>(scratch, sum_);
      ArrayMap<T>(total, extent(sum_.size())) += ConstArrayMap<T>(row_, extent(sum_.size()));
      store(sum_, total);
    }
  }

 private:
  DeviceTensor sum_;
  T* row_ = nullptr;
};

/// y = gain n(x).
template <class T>
void run_rms_norm(RowExtents e,
                  DeviceTensor const& y,
                  DeviceTensor const& x,
                  DeviceTensor const& gain,
                  T epsilon) {
  HostScratch scratch;
  T const* const from = load<T>(scratch, x);
  ConstArrayMap<T> const g(load<T>(scratch, gain), e.width);
  T* const to = output<T>(scratch, y);
  for (std::int64_t row = 0; row < e.rows; ++row) {
    ConstArrayMap<T> const v(from + row * e.width, e.width);
    ArrayMap<T>(to + row * e.width, e.width) = v * inverse_rms<T>(v, epsilon) * g;
  }
  store(y, to);
}

/// dx = gradient + addend; dgain += its sum over rows. dx and dgain may be absent.
template <class T>
void run_rms_norm_backward(RowExtents e,
                           DeviceTensor const& dx,
                           DeviceTensor const& dgain,
                           DeviceTensor const& dy,
                           DeviceTensor const& x,
                           DeviceTensor const& gain,
                           DeviceTensor const& addend,
                           T epsilon) {
  HostScratch scratch;
  auto const width = static_cast<std::size_t>(e.width);
  T const* const gradient = load<T>(scratch, dy);
  T const* const from = load<T>(scratch, x);
  T const* const other = load_optional<T>(scratch, addend);
  ConstArrayMap<T> const g(load<T>(scratch, gain), e.width);
  GainGradient<T> gain_gradient(scratch, dgain);
  T* const to = dx.present() ? output<T>(scratch, dx) : nullptr;
  ArrayMap<T> row(scratch.take<T>(width), e.width);  // dx may be dy
  for (std::int64_t i = 0; i < e.rows; ++i) {
    auto const at = i * e.width;
    if (to != nullptr && other != nullptr) {
      row = ConstArrayMap<T>(other + at, e.width);
    } else {
      row.setZero();
    }
    add_norm_gradient<T>(to != nullptr ? row.data() : nullptr,
                         gain_gradient.row(),
                         ConstArrayMap<T>(gradient + at, e.width),
                         ConstArrayMap<T>(from + at, e.width),
                         g,
                         epsilon);
    if (to != nullptr) {
      ArrayMap<T>(to + at, e.width) = row;
    }
  }
  gain_gradient.add_to_sum(scratch);
  if (to != nullptr) {
    store(dx, to);
  }
}

}  // namespace roundpipe::nn::detail
