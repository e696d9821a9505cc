// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/kernels/cross_entropy.cuh>
#include <roundpipe/cuda/kernels/embedding.cuh>
#include <roundpipe/cuda/kernels/scatter_add.cuh>
#include <roundpipe/cuda/kernels/sum.cuh>
#include <support/device_values.hpp>
#include <support/element_oracle.hpp>
#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace cu = roundpipe::cu;
using roundpipe::absent;
using roundpipe::Bytes;
using roundpipe::DeviceSpan;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::size_of;
using roundpipe::nn::RowExtents;
using roundpipe::test::device_indices;
using roundpipe::test::DeviceValues;
using roundpipe::test::error_of;
using roundpipe::test::PoisonedScratch;
using roundpipe::test::random_values;
using roundpipe::test::relative_error;
using roundpipe::test::tolerance;
using roundpipe::test::Values;

namespace {

using Indices = std::vector<std::int32_t>;

constexpr std::int64_t all_widths[] = {1, 7, 100, 129, 4096};
constexpr std::int32_t padding = -100;

/// \p n indices below \p end; every third one is the same, and a few are outside the table.
Indices random_indices(std::int64_t n, std::int32_t end, bool outside) {
  static std::mt19937 generator(20260102);
  std::uniform_int_distribution<std::int32_t> index(0, end - 1);
  Indices indices(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    indices[i] = i % 3 == 0 ? end / 2 : index(generator);
  }
  if (outside && n >= 5) {
    indices[1] = -1;
    indices[2] = end;
    indices[3] = std::numeric_limits<std::int32_t>::max();
    indices[4] = std::numeric_limits<std::int32_t>::min();
  }
  return indices;
}

bool is_row(std::int32_t index, std::int64_t rows) {
  return index >= 0 && index < rows;
}

double total_of(DeviceValues const& terms, double factor) {
  cu::Stream const stream;
  DeviceValues const total({1}, DType::f64);
  cu::sum(stream, total.tensor().as<double>(), terms, factor);
  auto const bytes = total.bits();
  double value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

TEST_CASE("a look-up yields the rows of the tokens, and zeros for invalid tokens") {
  cu::Stream const stream;
  std::int64_t const vocabulary = 11;
  for (auto const& types : roundpipe::test::element_types) {
    for (auto const width : all_widths) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(types.storage)), " ", width, " ", offset);
        std::int64_t const count = 37;
        auto const table_values =
            random_values(static_cast<std::size_t>(vocabulary * width), types.parameter);
        auto const indices = random_indices(count, vocabulary, true);
        DeviceValues const table({vocabulary, width}, types.parameter, table_values, offset);
        DeviceValues const y({count, width}, types.storage, offset);
        cu::embedding(stream, {count, width}, y, device_indices(indices), table);
        Values expected(static_cast<std::size_t>(count * width));
        for (std::size_t i = 0; i < expected.size(); ++i) {
          auto const j = static_cast<std::int64_t>(i) % width;
          auto const index = indices[i / static_cast<std::size_t>(width)];
          expected[i] =
              is_row(index, vocabulary)
                  ? roundpipe::test::rounded(
                        table_values[static_cast<std::size_t>(index * width + j)], types.storage)
                  : 0;
        }
        CHECK(y.values() == expected);
      }
    }
  }
}

TEST_CASE("the gradient of a look-up adds in the order of the tokens, to the bit") {
  cu::Stream const stream;
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (RowExtents const e : {RowExtents{1, 7},
                               RowExtents{37, 100},
                               RowExtents{300, 129},
                               RowExtents{100, 4096},
                               RowExtents{30'000, 8}}) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(type)), " ", e.rows, " ", e.width, " ", offset);
        std::int32_t const vocabulary = e.rows > 1000 ? 5000 : 11;
        auto const size = static_cast<std::size_t>(vocabulary * e.width);
        auto const sums = random_values(size, DType::f32);
        auto const dy_values = random_values(static_cast<std::size_t>(e.rows * e.width), type);
        auto const indices = random_indices(e.rows, vocabulary, true);
        DeviceValues const dtable({vocabulary, e.width}, DType::f32, sums, offset);
        DeviceValues const again({vocabulary, e.width}, DType::f32, sums, offset);
        DeviceValues const dy({e.rows, e.width}, type, dy_values, offset);
        auto const tokens = device_indices(indices);
        PoisonedScratch const scratch(cu::detail::scatter_add_bytes(e.rows));
        std::vector<float> expected(sums.begin(), sums.end());
        for (std::size_t i = 0; i < dy_values.size(); ++i) {
          auto const index = indices[i / static_cast<std::size_t>(e.width)];
          if (is_row(index, vocabulary)) {
            expected[static_cast<std::size_t>(index * e.width) +
                     i % static_cast<std::size_t>(e.width)] += static_cast<float>(dy_values[i]);
          }
        }
        cu::embedding_backward(stream, scratch, e, dtable, dy, tokens);
        cu::embedding_backward(stream, scratch, e, again, dy, tokens);
        CHECK(dtable.values() == Values(expected.begin(), expected.end()));
        CHECK(again.bits() == dtable.bits());
      }
    }
  }
}

TEST_CASE("the scratch of a look-up's gradient holds the sort, and grows with the tokens") {
  cu::Stream const stream;
  Bytes former = 0;
  for (std::int64_t const n : {1, 4864, 4865, 10'000, 100'000, 200'000, 200'001}) {
    auto const bytes = cu::detail::scatter_add_bytes(n);
    CHECK(bytes >= former);
    former = bytes;
    PoisonedScratch const scratch(bytes);
    DeviceValues const dtable({3, 1}, DType::f32, Values(3));
    DeviceValues const dy({n, 1}, DType::bf16, Values(static_cast<std::size_t>(n), 1.0));
    // Distinct tokens; three of them are valid rows.
    Indices tokens(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[tokens.size() - 1 - i] = static_cast<std::int32_t>(i);
    }
    cu::embedding_backward(stream, scratch, {n, 1}, dtable, dy, device_indices(tokens));
    CHECK(dtable.values()[0] == 1);
  }
  CHECK(cu::detail::scatter_add_bytes(std::int64_t{1} << 40) > former);
}

TEST_CASE("cross-entropy and its gradient agree with plain loops") {
  cu::Stream const stream;
  std::int64_t const rows = 7;
  double const scale = 0.125;
  for (auto const& types : roundpipe::test::element_types) {
    for (std::int32_t const width : {1, 7, 100, 129, 4096, 50'257}) {
      for (Bytes const offset : {Bytes{0}, size_of(DType::f32)}) {
        INFO(std::string(name_of(types.storage)), " ", width, " ", offset);
        // Here the logits have the parameter's type, and their gradients the storage type.
        auto const size = static_cast<std::size_t>(rows * width);
        auto logit_values = random_values(size, types.parameter);
        for (std::size_t i = 0; i < size; i += 3) {
          logit_values[i] = roundpipe::test::rounded(logit_values[i] * 8 + 300, types.parameter);
        }
        auto labels = random_indices(rows, width, false);
        labels[1] = padding;
        labels[2] = width;  // not a class
        DeviceValues const logits({rows, width}, types.parameter, logit_values, offset);
        DeviceValues const dlogits({rows, width}, types.storage, offset);
        DeviceValues const losses({rows}, DType::f32);
        DeviceValues const lse({rows}, DType::f32);
        auto const label_tensor = device_indices(labels);
        cu::cross_entropy(stream, {rows, width}, losses, lse, logits, label_tensor, padding);
        cu::cross_entropy_backward(
            stream, {rows, width}, dlogits, logits, lse, label_tensor, padding, scale);
        Values expected_lse;
        Values expected_losses;
        Values expected(size);
        for (std::size_t row = 0; row < labels.size(); ++row) {
          auto const* const v = &logit_values[row * static_cast<std::size_t>(width)];
          auto const largest = *std::max_element(v, v + width);
          double sum = 0;
          for (std::int32_t j = 0; j < width; ++j) {
            sum += std::exp(v[j] - largest);
          }
          expected_lse.push_back(largest + std::log(sum));
          bool const counts = is_row(labels[row], width);
          expected_losses.push_back(counts ? expected_lse.back() - v[labels[row]] : 0);
          for (std::int32_t j = 0; counts && j < width; ++j) {
            expected[row * static_cast<std::size_t>(width) + static_cast<std::size_t>(j)] =
                scale * (std::exp(v[j] - expected_lse.back()) - (j == labels[row] ? 1 : 0));
          }
        }
        CHECK(relative_error(lse.values(), expected_lse) < 1e-6);
        auto loss_values = losses.values();
        CHECK(loss_values[1] == 0);
        CHECK(std::isnan(loss_values[2]));
        loss_values[2] = 0;
        if (width > 1) {
          // An f32 near 300 is 3e-5 from its neighbour; the exponential magnifies this difference.
          CHECK(relative_error(loss_values, expected_losses) < 1e-5);
          CHECK(relative_error(dlogits.values(), expected) < tolerance(types.storage) + 3e-5);
        } else {
          CHECK(dlogits.values() == Values(size));
        }
        if (types.storage == types.parameter) {  // in place of the logits
          cu::cross_entropy_backward(
              stream, {rows, width}, logits, logits, lse, label_tensor, padding, scale);
          CHECK(logits.bits() == dlogits.bits());
        }
      }
    }
  }
}

TEST_CASE("a sum is formed in f64 for terms of any type, and repeats its bits") {
  for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
    for (std::int64_t const n : {1, 7, 1000, 100'003}) {
      auto const values = random_values(static_cast<std::size_t>(n), type);
      DeviceValues const terms({n}, type, values, size_of(type));
      double expected = 0;
      for (auto const value : values) {
        expected += value;
      }
      auto const total = total_of(terms, 0.375);
      CHECK(std::abs(total - 0.375 * expected) <= 1e-12 * static_cast<double>(n));
      CHECK(total_of(terms, 0.375) == total);
    }
  }
  CHECK(total_of(DeviceValues({3}, DType::f32, {16777216.0, 1.0, 1.0}), 0.5) == 8388609.0);
}

TEST_CASE("operations on tokens refuse unsupported types, and too little scratch") {
  cu::Stream const stream;
  RowExtents const e{4, 6};
  auto const tokens = device_indices({0, 1, 2, 1});
  DeviceValues const narrow({4, 6}, DType::f32);
  DeviceValues const wide({4, 6}, DType::f64);
  DeviceValues const one_each({4}, DType::f32);
  DeviceValues const wide_each({4}, DType::f64);
  PoisonedScratch const scratch(cu::detail::scatter_add_bytes(4));
  auto const unsupported = [](auto&& f) { return error_of(f).code() == Errc::unsupported; };
  CHECK(unsupported([&] { cu::embedding(stream, e, narrow, tokens, wide); }));
  CHECK(unsupported([&] { cu::embedding_backward(stream, scratch, e, wide, narrow, tokens); }));
  CHECK(unsupported(
      [&] { cu::cross_entropy(stream, e, one_each, wide_each, narrow, tokens, padding); }));
  CHECK(unsupported(
      [&] { cu::cross_entropy_backward(stream, e, wide, narrow, one_each, tokens, padding, 1); }));
  CHECK(unsupported([&] { cu::sum(stream, {}, wide, 1); }));
  CHECK(error_of([&] { cu::embedding_backward(stream, {}, e, narrow, narrow, tokens); }).code() ==
        Errc::invalid_argument);
}
