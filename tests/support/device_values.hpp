// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Numbers on a CUDA device, filled from the host and read back, for tests of operations.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/error.hpp>

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

namespace roundpipe::test {

/// \p value rounded to \p type.
inline double rounded(double value, DType type) {
  return visit_floating(type, [&](auto zero) {
    return static_cast<double>(decltype(zero)(static_cast<float>(value)));
  });
}

/// \p n normal numbers that \p type holds exactly; each call draws new ones.
inline std::vector<double> random_values(std::size_t n, DType type) {
  static std::mt19937 generator(20260101);
  std::normal_distribution<double> normal;
  std::vector<double> values(n);
  for (auto& value : values) {
    value = rounded(normal(generator), type);
  }
  return values;
}

/// A tensor on device 0 with memory of its own.
class DeviceValues {
 public:
  /// Sets every bit: a NaN in each floating type. The tensor begins \p offset bytes behind a
  /// multiple of 256.
  DeviceValues(Shape const& shape, DType type, Bytes offset = 0)
      : memory_(DeviceId(0), shape.size() * size_of(type) + offset + 1) {
    cu::check(cudaMemset(memory_.bytes().device_pointer(), 0xff, memory_.bytes().size()),
              "cudaMemset");
    auto const bytes = memory_.bytes().subspan(offset, memory_.bytes().size() - offset);
    tensor_ = DeviceTensor(bytes, shape, type);
    // A copy or fill of the default stream may still run, and the tests' streams do not wait for
    // it.
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  DeviceValues(Shape const& shape, DType type, std::vector<double> const& values, Bytes offset = 0)
      : DeviceValues(shape, type, offset) {
    std::vector<std::byte> bytes(tensor_.size_bytes());
    visit_floating(type, [&](auto zero) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        auto const value = decltype(zero)(static_cast<float>(values[i]));
        std::memcpy(&bytes[i * sizeof value], &value, sizeof value);
      }
    });
    cu::check(cudaMemcpy(tensor_.device_pointer(), bytes.data(), bytes.size(), cudaMemcpyDefault),
              "cudaMemcpy");
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

  [[nodiscard]] DeviceTensor const& tensor() const noexcept { return tensor_; }
  operator DeviceTensor const&() const noexcept { return tensor_; }

  /// Waits for the device first.
  [[nodiscard]] std::vector<std::byte> bits() const {
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<std::byte> bytes(tensor_.size_bytes());
    cu::check(cudaMemcpy(bytes.data(), tensor_.device_pointer(), bytes.size(), cudaMemcpyDefault),
              "cudaMemcpy");
    return bytes;
  }
  /// Waits for the device first.
  [[nodiscard]] std::vector<double> values() const {
    auto const bytes = bits();
    std::vector<double> result(tensor_.size());
    visit_floating(tensor_.dtype(), [&](auto zero) {
      for (std::size_t i = 0; i < result.size(); ++i) {
        std::memcpy(&zero, &bytes[i * sizeof zero], sizeof zero);
        result[i] = static_cast<double>(zero);
      }
    });
    return result;
  }

 private:
  cu::DeviceMemory memory_;
  DeviceTensor tensor_;
};

/// The Frobenius norm of the difference over that of \p expected; NaN if any value is NaN.
inline double relative_error(std::vector<double> const& values,
                             std::vector<double> const& expected) {
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += (values[i] - expected[i]) * (values[i] - expected[i]);
    norm += expected[i] * expected[i];
  }
  return std::sqrt(difference / norm);
}

/// The relative error of one rounding to \p type, and of some fp32 sums: half a unit in the last
/// place is 2^-9 of a bf16 and 2^-12 of an f16, at most twice that of a small mantissa.
inline double tolerance(DType type) {
  return type == DType::bf16 ? 6e-3 : type == DType::f16 ? 1e-3 : 1e-5;
}

}  // namespace roundpipe::test
