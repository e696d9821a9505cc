// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Biases of linear maps on the host, and their gradients.

#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/host_linear.hpp>
#include <roundpipe/nn/host_scratch.hpp>
#include <roundpipe/nn/op_checks.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace roundpipe::nn::detail {

/// y = addend + bias in each row; addend may be absent, or y.
template <class T>
void run_add_bias(RowExtents e,
                  DeviceTensor const& y,
                  DeviceTensor const& bias,
                  DeviceTensor const& addend) {
  HostScratch scratch;
  ConstArrayMap<T> const b(load<T>(scratch, bias), e.width);
  T const* const other = load_optional<T>(scratch, addend);
  T* const to = output<T>(scratch, y);
  for (std::int64_t row = 0; row < e.rows; ++row) {
    auto const at = row * e.width;
    if (other != nullptr) {
      ArrayMap<T>(to + at, e.width) = ConstArrayMap<T>(other + at, e.width) + b;
    } else {
      ArrayMap<T>(to + at, e.width) = b;
    }
  }
  store(y, to);
}

/// dbias += the sum of the rows of dy, row after row.
template <class T>
void run_bias_gradient(RowExtents e, DeviceTensor const& dbias, DeviceTensor const& dy) {
  HostScratch scratch;
  T const* const gradient = load<T>(scratch, dy);
  T* const sum = scratch.take<T>(static_cast<std::size_t>(e.width));
  std::fill_n(sum, e.width, T{0});
  for (std::int64_t row = 0; row < e.rows; ++row) {
    ArrayMap<T>(sum, e.width) += ConstArrayMap<T>(gradient + row * e.width, e.width);
  }
  T* const total = in_out<T>(scratch, dbias);
  ArrayMap<T>(total, e.width) += ConstArrayMap<T>(sum, e.width);
  store(dbias, total);
}

}  // namespace roundpipe::nn::detail
