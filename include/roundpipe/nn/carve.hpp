// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Helpers with which the layers divide their memory.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <cstdint>

namespace roundpipe::nn::detail {

/// \p bytes of \p carver as scratch of an \ref roundpipe::Ops; empty where the carver only counts.
[[nodiscard]] inline DeviceBytes take_scratch(TensorCarver& carver, Bytes bytes) {
  auto const tensor = carver.take({static_cast<std::int64_t>(bytes)}, DType::u8);
  return tensor.present() ? DeviceBytes{tensor.device_pointer(), bytes} : DeviceBytes{};
}

/// \p count vectors of \p width elements, from vector \p first on. Precondition: they exist.
[[nodiscard]] inline DeviceTensor row_range(DeviceTensor const& tensor,
                                            std::int64_t width,
                                            std::int64_t first,
                                            std::int64_t count) {
  auto const row_bytes = static_cast<Bytes>(width) * size_of(tensor.dtype());
  DeviceBytes const memory{tensor.device_pointer(), tensor.size_bytes()};
  return {
      memory.subspan(static_cast<Bytes>(first) * row_bytes, static_cast<Bytes>(count) * row_bytes),
      {count, width},
      tensor.dtype()};
}

}  // namespace roundpipe::nn::detail
