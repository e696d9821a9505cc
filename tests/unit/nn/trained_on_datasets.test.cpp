// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

/// \file
/// \brief A transformer trains on the batches of a dataset.

#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/data/batch_loader.hpp>
#include <roundpipe/data/dataset.hpp>
#include <roundpipe/data/permutation.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/learning_rate.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <support/made_documents.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trained_on_datasets_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

constexpr std::int32_t vocabulary = 24;
constexpr std::int64_t context = 12;

/// Documents in which each token follows from the one before: `next(t)` is an element of a
/// permutation. Every third document has a mask.
std::vector<MadeDocument> documents_of_a_rule() {
  RandomPermutation const next(vocabulary, {.seed = 1});
  std::vector<MadeDocument> documents;
  for (std::int32_t first = 0; first < 3 * vocabulary; ++first) {
    auto& document = documents.emplace_back();
    auto token = first % vocabulary;
    for (std::int32_t i = 0; i < 2 + first % 7; ++i) {
      document.tokens.push_back(token);
      if (first % 3 == 0) {
        document.labels.push_back(i == 1 ? ignored_label : token);
      }
      token = static_cast<std::int32_t>(next(static_cast<std::uint64_t>(token)));
    }
  }
  return documents;
}

auto made_trainer() {
  nn::TransformerConfig config;
  config.vocabulary = vocabulary;
  config.hidden = 16;
  config.heads = 2;
  config.kv_heads = 1;
  config.intermediate = 32;
  config.layers = 1;
  return SerialTrainer{nn::transformer<nn::HostOps<float>>(config),
                       AdamW({.rate = LearningRate::constant(0.02)}),
                       SerialOptions{.capacity = {4, context}, .micro_batches_per_round = 2}};
}

}  // namespace

TEST_CASE("a transformer learns what follows what from packed and from padded rows") {
  for (auto const packing : {RowPacking::packed, RowPacking::document_per_row}) {
    DatasetOptions options;
    options.context = static_cast<std::uint64_t>(context);
    options.packing = packing;
    options.pad_to_multiple = packing == RowPacking::packed ? 0 : 4;
    options.held_out_every = 5;
    options.vocabulary = static_cast<std::uint64_t>(vocabulary);
    Dataset const data({source_of(documents_of_a_rule())}, options);
    BatchRows const cut{.rows = 8, .micro_batch_rows = 4};
    auto trainer = made_trainer();
    BatchLoader loader(data, cut, data.position());
    for (int step = 0; step < 100; ++step) {
      trainer.forward_backward(loader.next().view());
      trainer.step();
    }
    TokenBatch held_out;
    REQUIRE(data.read_held_out(0, cut, held_out) > 4);     // two micro-batches
    CHECK(trainer.evaluate(held_out.view()).loss < 0.05);  // chance: 3.2
  }
}

}  // namespace trained_on_datasets_test
