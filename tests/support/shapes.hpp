// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Shapes and a device for tests of costs without a machine.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/estimate/model_shape.hpp>

namespace roundpipe::test {

/// The device of RoundPipe (arXiv:2604.27085), appendices B and C.
inline DeviceProperties rtx4090() {
  return {.name = "RTX 4090",
          .memory_bytes = Bytes{24} << 30,
          .flops_per_second = 330e12,
          .memory_bytes_per_second = 1008e9,
          .upload_bytes_per_second = 32e9,
          .download_bytes_per_second = 32e9};
}

/// Small enough to count by hand: 5 (2*5 + 2*2 + 3*7) = 175 parameters.
inline ModelShape small_dense() {
  return {.name = "small",
          .hidden = 5,
          .heads = 2,
          .kv_heads = 1,
          .head_dim = 2,
          .intermediate = 7,
          .layers = 3,
          .vocabulary = 11};
}

/// The same with four experts, two of them active: 5 (10 + 4 + 3*4*7) = 490 parameters, 280 active.
inline ModelShape small_mixture() {
  auto shape = small_dense();
  shape.name = "small mixture";
  shape.experts = 4;
  shape.active_experts = 2;
  return shape;
}

}  // namespace roundpipe::test
