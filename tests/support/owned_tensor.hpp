// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A tensor with its own memory.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>
#include <support/nn_harness.hpp>

#include <memory>
#include <vector>

namespace roundpipe::test {

/// A tensor with its own memory.
class OwnedTensor {
 public:
  OwnedTensor(Shape const& shape, DType type)
      : memory_(std::make_unique<GuardedMemory>(shape.size() * size_of(type))),
        tensor_(memory_->device(), shape, type) {}
  /// Of f64, with \p values.
  OwnedTensor(Shape const& shape, std::vector<double> const& values)
      : OwnedTensor(shape, DType::f64) {
    write(tensor_, values);
  }
  operator DeviceTensor const&() const { return tensor_; }
  [[nodiscard]] DeviceTensor const& operator*() const { return tensor_; }

 private:
  std::unique_ptr<GuardedMemory> memory_;
  DeviceTensor tensor_;
};

}  // namespace roundpipe::test
