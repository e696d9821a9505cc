// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Views of host memory as Eigen matrices, and the three products of a linear map.

#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/host_scratch.hpp>
#include <roundpipe/nn/op_checks.hpp>

#include <Eigen/Core>

#include <cstdint>

namespace roundpipe::nn::detail {

template <class T>
using RowMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MatrixMap = Eigen::Map<RowMatrix<T>>;
template <class T>
using ConstMatrixMap = Eigen::Map<RowMatrix<T> const>;
template <class T>
using StridedMap = Eigen::Map<RowMatrix<T>, 0, Eigen::OuterStride<>>;
template <class T>
using ConstStridedMap = Eigen::Map<RowMatrix<T> const, 0, Eigen::OuterStride<>>;
template <class T>
using ArrayMap = Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>>;
template <class T>
using ConstArrayMap = Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic> const>;

/// y = x weightᵀ + addend.
template <class T>
void run_linear(LinearExtents e,
                DeviceTensor const& y,
                DeviceTensor const& x,
                DeviceTensor const& weight,
                DeviceTensor const& addend) {
  HostScratch scratch;
  ConstMatrixMap<T> const a(load<T>(scratch, x), e.rows, e.in);
  ConstMatrixMap<T> const b(load<T>(scratch, weight), e.out, e.in);
  MatrixMap<T> c(output<T>(scratch, y), e.rows, e.out);
  if (addend.present()) {
    load_to(addend, c.data());
    c.noalias() += a * b.transpose();
  } else {
    c.noalias() = a * b.transpose();
  }
  store(y, c.data());
}

/// dx = dy weight + addend.
template <class T>
void run_linear_input_gradient(LinearExtents e,
                               DeviceTensor const& dx,
                               DeviceTensor const& dy,
                               DeviceTensor const& weight,
                               DeviceTensor const& addend) {
  HostScratch scratch;
  ConstMatrixMap<T> const a(load<T>(scratch, dy), e.rows, e.out);
  ConstMatrixMap<T> const b(load<T>(scratch, weight), e.out, e.in);
  MatrixMap<T> c(output<T>(scratch, dx), e.rows, e.in);
  if (addend.present()) {
    load_to(addend, c.data());
    c.noalias() += a * b;
  } else {
    c.noalias() = a * b;
  }
  store(dx, c.data());
}

/// dweight += dyᵀ x.
template <class T>
void run_linear_weight_gradient(LinearExtents e,
                                DeviceTensor const& dweight,
                                DeviceTensor const& dy,
                                DeviceTensor const& x) {
  HostScratch scratch;
  ConstMatrixMap<T> const a(load<T>(scratch, dy), e.rows, e.out);
  ConstMatrixMap<T> const b(load<T>(scratch, x), e.rows, e.in);
  MatrixMap<T> c(in_out<T>(scratch, dweight), e.out, e.in);
  c.noalias() += a.transpose() * b;
  store(dweight, c.data());
}

}  // namespace roundpipe::nn::detail
