// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/state/parameter_store.hpp>

#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace parameter_store_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

using Store = ParameterStore<HostBackend, Sgd>;

/// A store of a model, optionally tied, with SGD at rate 1.
struct Fixture {
  explicit Fixture(Store::Options options, DType type = DType::f32, bool tied = false)
      : blocks(form_blocks(
            describe(toy_model({.types = {.parameter = type}, .dense = 1, .tied = tied}), {1, 1}))),
        store(blocks, Sgd{LearningRate::constant(1)}, options, arena) {}

  /// Lets gradients arrive for \p use in \p iteration; all elements are \p value.
  void land(BlockUseId use, float value, std::uint64_t iteration = 1) {
    auto const& table = blocks.block_of(use).master;
    for (std::size_t t = 0; t < table.size(); ++t) {
      std::vector<float> const values(table[t].shape.size(), value);
      narrow(values,
             table[t].dtype,
             store.landing(use, iteration).subspan(table.offset(t), table[t].bytes()));
    }
  }
  void land_all(float value, std::uint64_t iteration = 1) {
    for (std::size_t u = 0; u < blocks.uses.size(); ++u) {
      BlockUseId const use(u);
      land(use, value, iteration);
    }
  }
  void measure_all(std::uint64_t step) {
    for (std::size_t b = 0; b < blocks.blocks.size(); ++b) {
      store.measure_gradient(BlockId(b), step);
    }
  }
  std::vector<float> weights(BlockId block, std::size_t tensor) {
    std::vector<float> result;
    store.with_weights(block, tensor, [&](HostSpan<float const> values) {
      result.assign(values.begin(), values.end());
    });
    return result;
  }
  /// The first element of a bf16 master copy.
  float master(std::uint64_t version) {
    return *reinterpret_cast<BFloat16 const*>(store.master(BlockId(0), version).data());
  }

  HostBackend backend{HostBackendOptions{}};
  HostArena<HostBackend> arena{backend};
  ParameterBlocks blocks;
  Store store;
};

}  // namespace

TEST_CASE("the gradients of a shared block's uses are summed, and the update subtracts the sum") {
  Fixture f({.seed = 1}, DType::f32, true);
  auto const block = f.blocks.uses[0].block;
  REQUIRE(f.blocks.blocks[block.index()].uses.size() == 2);
  auto const [first, second] =
      std::pair{f.blocks.blocks[block.index()].uses[0], f.blocks.blocks[block.index()].uses[1]};
  auto const before = f.weights(block, 0);
  f.land(first, 2);
  f.land(second, 3);
  f.store.accumulate(first, true, 1);
  f.store.accumulate(second, false, 1);
  f.store.update(block, 1, 1);
  auto const once = f.weights(block, 0);
  f.store.accumulate(first, true, 2);  // starts a new sum
  f.store.update(block, 2, 1);
  auto const twice = f.weights(block, 0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    CHECK(once[i] == before[i] - 5);
    CHECK(twice[i] == once[i] - 2);
  }
}

TEST_CASE("when P copies write the master copy, updates leave it unchanged") {
  Fixture f({.copies_parameters = true}, DType::bf16);
  auto const before = f.master(0);
  f.land_all(1);
  f.store.update(BlockId(0), 1, 1);
  CHECK(f.master(0) == before);
  f.store.copy_parameters(BlockId(0));
  CHECK(f.master(0) == static_cast<float>(BFloat16(f.weights(BlockId(0), 0)[0])));
  CHECK(f.master(0) != before);
}

TEST_CASE("with two master copies step T writes copy T mod 2 and leaves the other copy unchanged") {
  Fixture f({.master_copies = 2}, DType::bf16);
  auto const first = f.master(0);
  CHECK(f.master(1) == first);
  f.land_all(1);
  f.store.update(BlockId(0), 1, 1);
  CHECK(f.master(0) == first);
  CHECK(f.master(1) == static_cast<float>(BFloat16(f.weights(BlockId(0), 0)[0])));
  f.store.update(BlockId(0), 2, 1);
  CHECK(f.master(2) == f.master(0));
  CHECK(f.master(0) != first);
}

TEST_CASE("with two gradient buffers a step does not see the next iteration's gradients") {
  Fixture f({.gradient_buffers = 2});
  auto const before = f.weights(BlockId(0), 0)[0];
  f.land_all(1, 1);
  f.land_all(100, 2);
  f.store.update(BlockId(0), 1, 1);
  CHECK(f.weights(BlockId(0), 0)[0] == before - 1);
}

TEST_CASE("weights without an optimizer copy move from one master copy to the other") {
  for (auto const type : {DType::bf16, DType::f32}) {
    Fixture f({.master_copies = 2, .state_type = StateType::declared}, type);
    auto const before = f.weights(BlockId(0), 0)[0];
    f.land_all(64);  // far more than rounding removes
    for (std::size_t b = 0; b < f.blocks.blocks.size(); ++b) {
      f.store.update(BlockId(b), 1, 1);
    }
    auto const after = f.weights(BlockId(0), 0)[0];
    CHECK(after == doctest::Approx(before - 64).epsilon(0.01));
    CHECK(f.store.finished_steps() == 1);
  }
}

TEST_CASE("f16 parameters without fp32 weights are refused") {
  CHECK(error_of([] { Fixture({.state_type = StateType::declared}, DType::f16); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("clipping scales by the norm of all blocks, and refuses one that is not finite") {
  Fixture f({.verdict = {.clip_norm = 0.5}});
  auto const elements = f.blocks.parameter_count();
  f.land_all(1);
  f.measure_all(1);
  auto const before = f.weights(BlockId(0), 0)[0];
  f.store.update(BlockId(0), 1, 1);
  CHECK(f.weights(BlockId(0), 0)[0] ==
        doctest::Approx(before - 0.5 / std::sqrt(static_cast<double>(elements))).epsilon(1e-5));

  f.land_all(std::numeric_limits<float>::infinity());
  f.measure_all(7);
  auto const error = error_of([&] { f.store.update(BlockId(0), 7, 1); });
  CHECK(error.code() == Errc::not_finite);
  CHECK(error.message().find("step 7") != std::string::npos);
}

TEST_CASE("gradients are divided by their loss scale before clipping") {
  Fixture f({.verdict = {.clip_norm = 1e6, .skips_overflows = true}});
  f.land_all(1024);
  f.measure_all(1);
  auto const before = f.weights(BlockId(0), 0)[0];
  f.store.update(BlockId(0), 1, 1024);
  CHECK(f.weights(BlockId(0), 0)[0] == before - 1);
}

TEST_CASE("a step that overflows keeps the weights, and copies them to its master copy") {
  Fixture f({.master_copies = 2, .verdict = {.skips_overflows = true}}, DType::bf16);
  f.land_all(1);
  f.measure_all(1);
  f.store.update(BlockId(0), 1, 1);
  CHECK_FALSE(f.store.has_overflowed(1));
  auto const before = f.weights(BlockId(0), 0);
  f.land_all(std::numeric_limits<float>::infinity(), 2);
  f.measure_all(2);
  f.store.update(BlockId(0), 2, 1);
  CHECK(f.store.has_overflowed(2));
  CHECK_FALSE(f.store.has_overflowed(1));
  CHECK(f.weights(BlockId(0), 0) == before);
  CHECK(f.master(2) == f.master(1));
}

TEST_CASE("a step is finished when every block is updated, and torn before") {
  Fixture f({});
  for (std::size_t b = 0; b < f.blocks.blocks.size(); ++b) {
    CHECK(f.store.finished_steps() == 0);
    CHECK(f.store.is_torn() == (b > 0));
    f.store.update(BlockId(b), 1, 1);
  }
  CHECK(f.store.finished_steps() == 1);
  CHECK_FALSE(f.store.is_torn());
}

}  // namespace parameter_store_test
