// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Operations on tokens and labels on the host: embedding and cross-entropy.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/nn/host_linear.hpp>
#include <roundpipe/nn/host_scratch.hpp>
#include <roundpipe/nn/op_checks.hpp>

#include <Eigen/Core>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

namespace roundpipe::nn::detail {

/// \throws Error (invalid_argument) when \p token is outside a table of \p vocabulary rows.
inline void check_token(char const* what, std::int64_t token, std::int64_t vocabulary) {
  if (token < 0 || token >= vocabulary) {
    throw Error(Errc::invalid_argument,
                std::string(what) + " " + std::to_string(token) + " is outside the vocabulary of " +
                    std::to_string(vocabulary));
  }
}

/// y[i] = table[tokens[i]].
inline void run_embedding(RowExtents e,
                          DeviceTensor const& y,
                          DeviceTensor const& tokens,
                          DeviceTensor const& table) {
  auto const* const token = tokens.as<std::int32_t>().device_pointer();
  auto const width = static_cast<std::size_t>(e.width);
  visit_floating(table.dtype(), [&](auto from) {
    visit_floating(y.dtype(), [&](auto to) {
      auto const* const source = table.as<decltype(from)>().device_pointer();
      auto* const target = y.as<decltype(to)>().device_pointer();
      for (std::int64_t i = 0; i < e.rows; ++i) {
        check_token("token", token[i], table.shape()[0]);
        convert_all(source + token[i] * e.width, target + i * e.width, width);
      }
    });
  });
}

/// dtable[tokens[i]] += dy[i], in the order of i.
inline void run_embedding_backward(RowExtents e,
                                   DeviceTensor const& dtable,
                                   DeviceTensor const& dy,
                                   DeviceTensor const& tokens) {
  auto const* const token = tokens.as<std::int32_t>().device_pointer();
  visit_floating(dtable.dtype(), [&](auto sum) {
    visit_floating(dy.dtype(), [&](auto from) {
      auto* const target = dtable.as<decltype(sum)>().device_pointer();
      auto const* const source = dy.as<decltype(from)>().device_pointer();
      for (std::int64_t i = 0; i < e.rows; ++i) {
        check_token("token", token[i], dtable.shape()[0]);
        auto* const row = target + token[i] * e.width;
        for (std::int64_t j = 0; j < e.width; ++j) {
          row[j] = convert<decltype(sum)>(row[j] + convert<decltype(sum)>(source[i * e.width + j]));
        }
      }
    });
  });
}

/// losses = lse - logits[label]; 0 where the label is \p padding.
template <class T>
void run_cross_entropy(RowExtents e,
                       DeviceTensor const& losses,
                       DeviceTensor const& lse,
                       DeviceTensor const& logits,
                       DeviceTensor const& labels,
                       std::int32_t padding) {
  HostScratch scratch;
  auto const* const label = labels.as<std::int32_t>().device_pointer();
  T const* const values = load<T>(scratch, logits);
  T* const loss = output<T>(scratch, losses);
  T* const log_sums = output<T>(scratch, lse);
  for (std::int64_t i = 0; i < e.rows; ++i) {
    ConstArrayMap<T> const row(values + i * e.width, e.width);
    auto const largest = row.maxCoeff();
    log_sums[i] = largest + std::log((row - largest).exp().sum());
    loss[i] = T{0};
    if (label[i] != padding) {
      check_token("label", label[i], e.width);
      loss[i] = log_sums[i] - row[label[i]];
    }
  }
  store(losses, loss);
  store(lse, log_sums);
}

/// dlogits = scale (exp(logits - lse) - onehot(label)); 0 where the label is \p padding.
template <class T>
void run_cross_entropy_backward(RowExtents e,
                                DeviceTensor const& dlogits,
                                DeviceTensor const& logits,
                                DeviceTensor const& lse,
                                DeviceTensor const& labels,
                                std::int32_t padding,
                                T scale) {
  HostScratch scratch;
  auto const* const label = labels.as<std::int32_t>().device_pointer();
  T const* const values = load<T>(scratch, logits);
  T const* const log_sums = load<T>(scratch, lse);
  T* const to = output<T>(scratch, dlogits);
  for (std::int64_t i = 0; i < e.rows; ++i) {
    ArrayMap<T> row(to + i * e.width, e.width);
    if (label[i] == padding) {
      row.setZero();
      continue;
    }
    check_token("label", label[i], e.width);
    row = (ConstArrayMap<T>(values + i * e.width, e.width) - log_sums[i]).exp() * scale;
    row[label[i]] -= scale;
  }
  store(dlogits, to);
}

/// total = factor times the sum of \p terms.
inline void run_sum(DeviceSpan<double> total, DeviceTensor const& terms, double factor) {
  visit_floating(terms.dtype(), [&](auto element) {
    auto const* const values = terms.as<decltype(element)>().device_pointer();
    double sum = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      sum += static_cast<double>(values[i]);
    }
    *total.device_pointer() = factor * sum;
  });
}

}  // namespace roundpipe::nn::detail
