// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The smallest model of Ops: it computes nothing.

#include <roundpipe/concepts/ops.hpp>

#include <cstdint>

namespace roundpipe::test {

/// A stream with no members; it cannot even be copied.
struct OpsArchetypeStream {
  OpsArchetypeStream() = default;
  OpsArchetypeStream(OpsArchetypeStream const&) = delete;
  OpsArchetypeStream& operator=(OpsArchetypeStream const&) = delete;
};

/// Copyable, not assignable, not default-constructible; its scratch sizes all differ.
class OpsArchetype {
 public:
  using Stream = OpsArchetypeStream;

  OpsArchetype(Stream&, DeviceBytes) {}
  OpsArchetype(OpsArchetype const&) = default;
  OpsArchetype& operator=(OpsArchetype const&) = delete;

  static Bytes linear_scratch_bytes() { return 1; }
  static Bytes norm_scratch_bytes(std::int64_t, std::int64_t) { return 2; }
  static Bytes attention_scratch_bytes(AttentionShape const&) { return 3; }
  static Bytes embedding_scratch_bytes(std::int64_t, std::int64_t, std::int64_t) { return 4; }
  static Bytes bias_scratch_bytes(std::int64_t, std::int64_t) { return 5; }

  using T = DeviceTensor const&;
  void linear(T, T, T, T, double = 1) const {}
  void linear_input_gradient(T, T, T, T, double = 1) const {}
  void linear_weight_gradient(T, T, T) const {}
  void add_bias(T, T, T) const {}
  void bias_gradient(T, T) const {}
  void rms_norm(T, T, T, double) const {}
  void rms_norm_backward(T, T, T, T, T, T, double) const {}
  void rotary(T, T, T, RotaryOptions const&) const {}
  void rotary_backward(T, T, T, T, T, RotaryOptions const&) const {}
  void attention(T, T, T, T, T, std::int64_t) const {}
  void attention_backward(T, T, T, T, T, T, T, T, T, std::int64_t) const {}
  void swiglu(T, T, T) const {}
  void swiglu_backward(T, T, T, T, T, T) const {}
  void dropout(T, T, T, DropoutOptions const&) const {}
  void embedding(T, T, T) const {}
  void embedding_backward(T, T, T) const {}
  void cross_entropy(T, T, T, T, std::int32_t) const {}
  void cross_entropy_backward(T, T, T, T, std::int32_t, double) const {}
  void sum(DeviceSpan<double>, T, double) const {}
};

}  // namespace roundpipe::test
