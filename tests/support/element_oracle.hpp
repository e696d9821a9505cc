// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The element-wise operations of \c Ops in plain loops over doubles, and helpers that the
/// tests of their GPU kernels share.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/cuda/device/device_memory.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <support/device_values.hpp>

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace roundpipe::test {

using Values = std::vector<double>;

/// The type of stored tensors, and the type of a gain or table.
struct ElementTypes {
  DType storage;
  DType parameter;
};

/// The types that kernels are made for, and one mix that takes the slow path.
inline constexpr ElementTypes element_types[] = {{DType::f32, DType::f32},
                                                 {DType::bf16, DType::bf16},
                                                 {DType::bf16, DType::f32},
                                                 {DType::f16, DType::f16},
                                                 {DType::f16, DType::f32},
                                                 {DType::f32, DType::bf16}};

/// Scratch that starts as NaNs.
class PoisonedScratch {
 public:
  explicit PoisonedScratch(Bytes bytes) : memory_(DeviceId(0), bytes) {
    if (bytes > 0) {
      cu::check(cudaMemset(memory_.bytes().device_pointer(), 0xff, bytes), "cudaMemset");
      cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    }
  }
  operator DeviceBytes() const noexcept { return memory_.bytes(); }

 private:
  cu::DeviceMemory memory_;
};

/// \p indices as a tensor of i32.
inline DeviceValues device_indices(std::vector<std::int32_t> const& indices) {
  DeviceValues tensor({static_cast<std::int64_t>(indices.size())}, DType::i32);
  cu::check(cudaMemcpy(tensor.tensor().device_pointer(),
                       indices.data(),
                       indices.size() * sizeof(std::int32_t),
                       cudaMemcpyDefault),
            "cudaMemcpy");
  cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return tensor;
}

/// gain n(x) for each vector of gain.size() elements.
inline Values norm_of(Values const& x, Values const& gain, double epsilon) {
  auto y = x;
  auto const width = gain.size();
  for (std::size_t row = 0; row < x.size() / width; ++row) {
    double square = 0;
    for (std::size_t j = 0; j < width; ++j) {
      square += x[row * width + j] * x[row * width + j];
    }
    for (std::size_t j = 0; j < width; ++j) {
      y[row * width + j] *= gain[j] / std::sqrt(square / static_cast<double>(width) + epsilon);
    }
  }
  return y;
}

/// Gradients of an operation on vectors with a gain.
struct NormGradients {
  Values x;
  Values gain;
};

inline NormGradients norm_gradients(Values const& dy,
                                    Values const& x,
                                    Values const& gain,
                                    double epsilon) {
  NormGradients d{Values(x.size()), Values(gain.size())};
  auto const width = gain.size();
  for (std::size_t row = 0; row < x.size() / width; ++row) {
    double square = 0;
    double product = 0;
    for (std::size_t j = 0; j < width; ++j) {
      auto const at = row * width + j;
      square += x[at] * x[at];
      product += dy[at] * gain[j] * x[at];
    }
    auto const r = 1 / std::sqrt(square / static_cast<double>(width) + epsilon);
    for (std::size_t j = 0; j < width; ++j) {
      auto const at = row * width + j;
      d.gain[j] += dy[at] * x[at] * r;
      d.x[at] = dy[at] * gain[j] * r - x[at] * product * r * r * r / static_cast<double>(width);
    }
  }
  return d;
}

/// Rotates the pairs of each head of \p x, [rows, length, heads, width], by \p direction times
/// their angles, and amplifies them.
inline Values turned(Values const& x,
                     std::size_t length,
                     std::size_t heads,
                     std::size_t width,
                     RotaryOptions const& options,
                     double direction) {
  auto const& blend = options.blend;
  auto y = x;
  auto const half = width / 2;
  for (std::size_t head = 0; head < x.size() / width; ++head) {
    auto const position = static_cast<double>(head / heads % length);
    for (std::size_t i = 0; i < half; ++i) {
      auto const pair = static_cast<double>(i);
      auto const frequency = std::pow(options.theta, -2 * pair / static_cast<double>(width));
      auto const share =
          blend.kept + blend.kept_by_pair * pair + blend.kept_by_frequency * frequency;
      auto const kept = share < 0 ? 0 : share > 1 ? 1 : share;
      auto const angle =
          direction * position * (frequency * kept + frequency * (1 - kept) / blend.factor);
      auto const a = blend.amplitude * x[head * width + i];
      auto const b = blend.amplitude * x[head * width + half + i];
      y[head * width + i] = a * std::cos(angle) - b * std::sin(angle);
      y[head * width + half + i] = b * std::cos(angle) + a * std::sin(angle);
    }
  }
  return y;
}

}  // namespace roundpipe::test
