// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/parameter_store.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>
#include <vector>

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

using Store = ParameterStore<HostBackend, Sgd>;

/// A store of a tied model, with SGD of rate 1.
struct Fixture {
  explicit Fixture(Store::Options options, DType type = DType::f32)
      : blocks(form_blocks(describe(
            toy_model({.types = {.parameter = type}, .dense = 1, .tied = true}), {1, 1}))),
        store(blocks, Sgd{LearningRate::constant(1)}, options, arena) {}

  /// Lets gradients of all ones land for \p use.
  void land(std::size_t use, float value) {
    auto const& table = blocks.block_of(use).master;
    for (std::size_t t = 0; t < table.size(); ++t) {
      std::vector<float> const ones(table[t].shape.size(), value);
      narrow(ones, table[t].dtype, store.landing(use).subspan(table.offset(t), table[t].bytes()));
    }
  }

  HostBackend backend{HostBackendOptions{}};
  HostArena<HostBackend> arena{backend};
  ParameterBlocks blocks;
  Store store;
};

}  // namespace

TEST_CASE("gradients of a shared block's uses are summed, and the update subtracts them") {
  Fixture f({.seed = 1});
  auto const block = f.blocks.uses[0].block;
  REQUIRE(f.blocks.blocks[block.index()].uses.size() == 2);
  auto const [first, second] = std::pair{f.blocks.blocks[block.index()].uses[0],
                                         f.blocks.blocks[block.index()].uses[1]};
  auto const weights = f.store.weights(block, 0);
  std::vector<float> const before(weights.begin(), weights.end());
  f.land(first, 2);
  f.land(second, 3);
  f.store.accumulate(first, true);
  f.store.accumulate(second, false);
  f.store.update(block, 1);
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(weights[i] == before[i] - 5);
  }
  f.store.accumulate(first, true);  // begins anew
  f.store.update(block, 2);
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(weights[i] == before[i] - 5 - 2);
  }
}

TEST_CASE("the master copy changes with the P copy only, rounded to its type") {
  Fixture f({}, DType::bf16);
  BlockId const block(0);
  auto const master = reinterpret_cast<BFloat16 const*>(f.store.master(block).data());
  auto const weights = f.store.weights(block, 0);
  CHECK(static_cast<float>(master[0]) == static_cast<float>(BFloat16(weights[0])));
  weights[0] = 1.00390625F;  // halfway between two bf16 numbers
  CHECK(static_cast<float>(master[0]) != 1.0F);
  f.store.copy_parameters(block);
  CHECK(static_cast<float>(master[0]) == 1.0F);  // ties to even
}

TEST_CASE("with G copies the optimizer does not see later gradients") {
  Fixture f({.copies_gradients = true});
  BlockId const block(0);
  auto const use = f.blocks.blocks[0].uses[0];
  auto const weights = f.store.weights(block, 0);
  auto const before = weights[0];
  f.land(use, 1);
  f.store.accumulate(use, true);
  f.store.copy_gradient(block);
  f.land(use, 100);
  f.store.accumulate(use, true);
  f.store.update(block, 1);
  CHECK(weights[0] == before - 1);
}

TEST_CASE("clipping scales by the norm of all blocks, and refuses one that is not finite") {
  Fixture f({.clip_norm = 0.5});
  std::size_t elements = 0;
  for (std::size_t b = 0; b < f.blocks.blocks.size(); ++b) {
    for (auto const& spec : f.blocks.blocks[b].specs) {
      elements += spec.tensor.shape.size();
    }
    f.land(f.blocks.blocks[b].uses[0], 1);
    f.store.accumulate(f.blocks.blocks[b].uses[0], true);
    f.store.measure_gradient(BlockId(b));
  }
  auto const weights = f.store.weights(BlockId(0), 0);
  auto const before = weights[0];
  f.store.update(BlockId(0), 1);
  CHECK(weights[0] ==
        doctest::Approx(before - 0.5 / std::sqrt(static_cast<double>(elements))).epsilon(1e-5));

  f.land(f.blocks.blocks[0].uses[0], std::numeric_limits<float>::infinity());
  f.store.accumulate(f.blocks.blocks[0].uses[0], true);
  f.store.measure_gradient(BlockId(0));
  auto const error = error_of([&] { f.store.update(BlockId(0), 7); });
  CHECK(error.code() == Errc::not_finite);
  CHECK(error.message().find("step 7") != std::string::npos);
}

TEST_CASE("a step is finished when every block is updated") {
  Fixture f({});
  for (std::size_t b = 0; b < f.blocks.blocks.size(); ++b) {
    CHECK(f.store.finished_steps() == 0);
    f.store.update(BlockId(b), 1);
  }
  CHECK(f.store.finished_steps() == 1);
}
