// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A model of toy layers with every kind of boundary, and data for it.

#include <roundpipe/core/random.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/model/sequential.hpp>
#include <support/toy_layers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::test {

/// The parts of a \ref toy_model; the counts may be 0.
struct ToyModelOptions {
  ToyTypes types{};
  std::size_t dense = 2;    ///< \ref ToyDense
  bool drops = false;       ///< A \ref ToyDropout and a \ref ToyScale follow.
  std::size_t crosses = 0;  ///< \ref ToyCross layers between a ToyTwoOut and a ToyTwoIn, if any.
  bool tied = false;        ///< First and last layer share their matrix.
  bool dense_tied = false;  ///< All dense layers share their matrix.
  bool empty_parameters = false;  ///< Each dense layer has a parameter without elements, too.
  bool frozen_input = false;      ///< The first layer is frozen, and the last one's matrix if tied.
  std::size_t frozen_dense = 0;   ///< The number of frozen first dense layers; all if dense_tied.
};

/// Input, dense layers, optional layers, and the loss.
inline auto toy_model(ToyModelOptions const& options) {
  auto const& types = options.types;
  auto frozen = types;
  frozen.frozen = ToyTypes::all;
  auto loss = types;
  if (options.frozen_input && options.tied) {
    loss.frozen |= 2U;  // bit 1: the matrix
  }
  auto const frozen_dense = options.dense_tied && options.frozen_dense > 0
                                ? options.dense
                                : std::min(options.frozen_dense, options.dense);
  bool const empty = options.empty_parameters;
  std::string const outer_key = options.tied ? "outer" : "";
  std::string const dense_key = options.dense_tied ? "dense" : "";
  std::size_t const drops = options.drops ? 1 : 0;
  std::size_t const pairs = options.crosses > 0 ? 1 : 0;
  return Sequential{ToyInput{options.frozen_input ? frozen : types, 3, outer_key},
                    repeat(frozen_dense, ToyDense{frozen, dense_key, empty}),
                    repeat(options.dense - frozen_dense, ToyDense{types, dense_key, empty}),
                    repeat(drops, ToyDropout{types}),
                    repeat(drops, ToyScale{types}),
                    repeat(pairs, ToyTwoOut{types}),
                    repeat(options.crosses, ToyCross{types}),
                    repeat(pairs, ToyTwoIn{types}),
                    ToyLoss{loss, 3, outer_key}};
}

/// Values, targets and masks for a \ref toy_model, drawn from a seed.
class ToyData {
 public:
  ToyData(std::vector<BatchShape> shapes, std::uint64_t seed) : shapes_(std::move(shapes)) {
    std::size_t positions = 0;
    for (auto const shape : shapes_) {
      positions += static_cast<std::size_t>(shape.positions());
    }
    RandomKey const key{seed, 0, 0, 0, 0};
    for (std::size_t i = 0; i < 3 * positions; ++i) {
      values_.push_back(normal(key.with_stream(1), i));
      targets_.push_back(normal(key.with_stream(2), i));
    }
    for (std::size_t p = 0; p < positions; ++p) {
      mask_.push_back(random_word(key.with_stream(3), p) % 4 == 0 ? 0 : 1);
    }
  }
  ToyData(std::size_t count, BatchShape shape, std::uint64_t seed)
      : ToyData(std::vector<BatchShape>(count, shape), seed) {}

  /// Views; they live as long as this object.
  [[nodiscard]] Batch batch() const {
    Batch result(shapes_);
    result.set("values", values_).set("targets", targets_).set("mask", mask_);
    return result;
  }

  [[nodiscard]] std::vector<float>& values() noexcept { return values_; }
  [[nodiscard]] std::vector<float>& targets() noexcept { return targets_; }
  [[nodiscard]] std::vector<std::uint8_t>& mask() noexcept { return mask_; }

 private:
  std::vector<BatchShape> shapes_;
  std::vector<float> values_;
  std::vector<float> targets_;
  std::vector<std::uint8_t> mask_;
};

}  // namespace roundpipe::test
