// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Views of host memory as Eigen matrices, and the three products of a linear map.

#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/host_scratch.hpp>
#include <roundpipe/nn/op_checks.hpp>

#include <Eigen/Core>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace roundpipe::nn::detail {

template <class T>
using ArrayMap = Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>>;
template <class T>
using ConstArrayMap = Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic> const>;

/// A view of a matrix in host memory; its rows begin \c stride elements apart.
template <class T>
struct MatrixView {
  T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  /// A matrix of \p m_rows contiguous rows of \p m_cols elements.
  static MatrixView dense(T* memory, std::int64_t m_rows, std::int64_t m_cols) {
    return {memory, m_rows, m_cols, m_cols};
  }
  operator MatrixView<T const>() const { return {data, rows, cols, stride}; }
  [[nodiscard]] auto map() const {
    using Value = std::remove_const_t<T>;
    using Matrix = Eigen::Matrix<Value, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using Like = std::conditional_t<std::is_const_v<T>, Matrix const, Matrix>;
    return Eigen::Map<Like, 0, Eigen::OuterStride<>>(
        data, rows, cols, Eigen::OuterStride<>(stride));
  }
};

// All products go through the next three functions, because Eigen's kernels take long to compile.

/// c += scale a bᵀ.
template <class T>
void add_product_nt(MatrixView<T> c, MatrixView<T const> a, MatrixView<T const> b, T scale = 1) {
  c.map().noalias() += (a.map() * scale) * b.map().transpose();
}
/// c += scale a b.
template <class T>
void add_product_nn(MatrixView<T> c, MatrixView<T const> a, MatrixView<T const> b, T scale = 1) {
  c.map().noalias() += (a.map() * scale) * b.map();
}
/// c += scale aᵀ b.
template <class T>
void add_product_tn(MatrixView<T> c, MatrixView<T const> a, MatrixView<T const> b, T scale = 1) {
  c.map().noalias() += (a.map().transpose() * scale) * b.map();
}

/// The memory in which to compute \p y. It starts as \p addend, or as zeros where \p addend is
/// absent.
template <class T>
[[nodiscard]] T* output_with_addend(HostScratch& scratch,
                                    DeviceTensor const& y,
                                    DeviceTensor const& addend) {
  T* const values = output<T>(scratch, y);
  if (addend.present()) {
    load_to(addend, values);
  } else {
    std::fill_n(values, y.size(), T{0});
  }
  return values;
}

/// y = scale x weightᵀ + addend.
template <class T>
void run_linear(LinearExtents e,
                DeviceTensor const& y,
                DeviceTensor const& x,
                DeviceTensor const& weight,
                DeviceTensor const& addend,
                T scale = 1) {
  HostScratch scratch;
  auto const a = MatrixView<T const>::dense(load<T>(scratch, x), e.rows, e.in);
  auto const b = MatrixView<T const>::dense(load<T>(scratch, weight), e.out, e.in);
  auto const c = MatrixView<T>::dense(output_with_addend<T>(scratch, y, addend), e.rows, e.out);
  add_product_nt<T>(c, a, b, scale);
  store(y, c.data);
}

/// dx = scale dy weight + addend.
template <class T>
void run_linear_input_gradient(LinearExtents e,
                               DeviceTensor const& dx,
                               DeviceTensor const& dy,
                               DeviceTensor const& weight,
                               DeviceTensor const& addend,
                               T scale = 1) {
  HostScratch scratch;
  auto const a = MatrixView<T const>::dense(load<T>(scratch, dy), e.rows, e.out);
  auto const b = MatrixView<T const>::dense(load<T>(scratch, weight), e.out, e.in);
  auto const c = MatrixView<T>::dense(output_with_addend<T>(scratch, dx, addend), e.rows, e.in);
  add_product_nn<T>(c, a, b, scale);
  store(dx, c.data);
}

/// dweight += dyᵀ x.
template <class T>
void run_linear_weight_gradient(LinearExtents e,
                                DeviceTensor const& dweight,
                                DeviceTensor const& dy,
                                DeviceTensor const& x) {
  HostScratch scratch;
  auto const a = MatrixView<T const>::dense(load<T>(scratch, dy), e.rows, e.out);
  auto const b = MatrixView<T const>::dense(load<T>(scratch, x), e.rows, e.in);
  auto const c = MatrixView<T>::dense(in_out<T>(scratch, dweight), e.out, e.in);
  add_product_tn<T>(c, a, b);
  store(dweight, c.data);
}

}  // namespace roundpipe::nn::detail
