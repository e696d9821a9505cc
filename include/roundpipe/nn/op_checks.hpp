// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The checks of operands that every \ref roundpipe::Ops makes when an operation is
/// enqueued, and the extents that the checks derive.

#include <roundpipe/concepts/ops.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace roundpipe::nn {

using roundpipe::LinearExtents;

/// \p rows vectors of \p width elements.
struct RowExtents {
  std::int64_t rows = 0;
  std::int64_t width = 0;
};

namespace detail {

inline std::string describe(DeviceTensor const& t) {
  return t.present() ? std::string(name_of(t.dtype())) + to_string(t.shape()) : "no tensor";
}

[[noreturn]] inline void misfit(char const* operation, char const* what, DeviceTensor const& t) {
  throw Error(Errc::invalid_argument,
              std::string(operation) + ": " + what + ", not " + describe(t));
}

inline void check_floating(char const* operation, DeviceTensor const& t) {
  if (!t.present() || !is_floating(t.dtype())) {
    misfit(operation, "an operand must be a floating tensor", t);
  }
}

inline void check_size(char const* operation, DeviceTensor const& t, std::int64_t size) {
  check_floating(operation, t);
  if (t.size() != static_cast<std::size_t>(size)) {
    misfit(operation, ("an operand must have " + std::to_string(size) + " elements").c_str(), t);
  }
}

inline void check_optional(char const* operation, DeviceTensor const& t, std::int64_t size) {
  if (t.present()) {
    check_size(operation, t, size);
  }
}

inline void check_indices(char const* operation, DeviceTensor const& t, std::int64_t size) {
  if (!t.present() || t.dtype() != DType::i32 || t.size() != static_cast<std::size_t>(size)) {
    misfit(operation, ("indices must be " + std::to_string(size) + " i32 values").c_str(), t);
  }
}

/// Checks a sum of gradients: it must have an accumulation type.
inline void check_sum(char const* operation, DeviceTensor const& t, std::int64_t size) {
  check_size(operation, t, size);
  if (t.dtype() != accumulation_type(t.dtype())) {
    misfit(operation, "a sum of gradients must have an accumulation type", t);
  }
}

/// Checks a sum of gradients unless it is absent, as for a frozen parameter.
inline void check_optional_sum(char const* operation, DeviceTensor const& t, std::int64_t size) {
  if (t.present()) {
    check_sum(operation, t, size);
  }
}

inline std::int64_t extent(std::size_t n) noexcept {
  return static_cast<std::int64_t>(n);
}

inline RowExtents check_rows(char const* operation, DeviceTensor const& t, std::int64_t width) {
  check_floating(operation, t);
  if (width < 1 || extent(t.size()) % width != 0) {
    misfit(operation, ("an operand must have rows of " + std::to_string(width)).c_str(), t);
  }
  return {extent(t.size()) / width, width};
}

/// Checks the operands of a product or of a weight gradient; weight [out, in] gives the widths.
inline LinearExtents check_linear(char const* operation,
                                  DeviceTensor const& y,
                                  DeviceTensor const& x,
                                  DeviceTensor const& weight) {
  check_floating(operation, weight);
  if (weight.shape().rank() != 2) {
    misfit(operation, "a weight must have the shape [out, in]", weight);
  }
  auto const out = weight.shape()[0];
  auto const in = weight.shape()[1];
  auto const rows = check_rows(operation, x, in).rows;
  check_size(operation, y, rows * out);
  return {rows, in, out};
}

/// Checks the operands of a bias; \p bias gives the width of rows. c is optional.
inline RowExtents check_bias(char const* operation,
                             DeviceTensor const& y,
                             DeviceTensor const& bias,
                             DeviceTensor const& c) {
  check_floating(operation, bias);
  auto const extents = check_rows(operation, y, extent(bias.size()));
  check_optional(operation, c, extent(y.size()));
  return extents;
}

inline RowExtents check_norm(char const* operation,
                             DeviceTensor const& y,
                             DeviceTensor const& x,
                             DeviceTensor const& gain) {
  check_floating(operation, gain);
  auto const extents = check_rows(operation, x, extent(gain.size()));
  check_size(operation, y, extent(x.size()));
  return extents;
}

/// Checks that all tensors have as many elements as the first one.
inline void check_same(char const* operation, std::initializer_list<DeviceTensor const*> tensors) {
  for (auto const* tensor : tensors) {
    check_size(operation, *tensor, extent((*tensors.begin())->size()));
  }
}

inline void check_rank4(char const* operation, DeviceTensor const& x) {
  check_floating(operation, x);
  if (x.shape().rank() != 4) {
    misfit(operation, "an operand must have the shape [rows, length, heads, head_dim]", x);
  }
}

inline void check_rotary(char const* operation,
                         DeviceTensor const& y,
                         DeviceTensor const& x,
                         DeviceTensor const& gain) {
  check_rank4(operation, x);
  if (x.shape()[3] % 2 != 0) {
    misfit(operation, "head_dim must be even", x);
  }
  check_size(operation, y, extent(x.size()));
  check_optional(operation, gain, x.shape()[3]);
}

/// A window that no query reaches the end of counts as none.
inline AttentionShape check_attention(char const* operation,
                                      DeviceTensor const& out,
                                      DeviceTensor const& lse,
                                      DeviceTensor const& q,
                                      DeviceTensor const& k,
                                      DeviceTensor const& v,
                                      std::int64_t window) {
  check_rank4(operation, q);
  check_rank4(operation, k);
  auto const& s = q.shape();
  auto const& t = k.shape();
  if (t[0] != s[0] || t[1] != s[1] || t[3] != s[3] || t[2] < 1 || s[2] % t[2] != 0) {
    misfit(operation, ("keys must fit queries of " + describe(q)).c_str(), k);
  }
  check_size(operation, v, extent(k.size()));
  check_size(operation, out, extent(q.size()));
  check_size(operation, lse, s[0] * s[1] * s[2]);
  if (window < 0) {
    throw Error(Errc::invalid_argument,
                std::string(operation) +
                    ": a window has at least one position (0: no window), not " +
                    std::to_string(window));
  }
  return {s[0], s[1], s[2], t[2], s[3], q.dtype(), window < s[1] ? window : 0};
}

inline RowExtents check_embedding(char const* operation,
                                  DeviceTensor const& y,
                                  DeviceTensor const& tokens,
                                  DeviceTensor const& table) {
  check_floating(operation, table);
  if (table.shape().rank() != 2) {
    misfit(operation, "a table must have the shape [vocabulary, width]", table);
  }
  auto const count = extent(tokens.size());
  check_indices(operation, tokens, count);
  check_size(operation, y, count * table.shape()[1]);
  return {count, table.shape()[1]};
}

inline RowExtents check_logits(char const* operation,
                               DeviceTensor const& logits,
                               DeviceTensor const& lse,
                               DeviceTensor const& labels) {
  check_floating(operation, logits);
  if (logits.shape().rank() != 2) {
    misfit(operation, "logits must have the shape [positions, vocabulary]", logits);
  }
  auto const rows = logits.shape()[0];
  check_size(operation, lse, rows);
  check_indices(operation, labels, rows);
  return {rows, logits.shape()[1]};
}

inline void check_dropout(char const* operation,
                          DeviceTensor const& y,
                          DeviceTensor const& x,
                          DeviceTensor const& addend,
                          DropoutOptions const& options) {
  check_floating(operation, x);
  check_size(operation, y, extent(x.size()));
  check_optional(operation, addend, extent(x.size()));
  require(options.rate >= 0 && options.rate < 1,
          Errc::invalid_argument,
          "dropout: the rate must be in [0, 1)");
}

}  // namespace detail

}  // namespace roundpipe::nn
