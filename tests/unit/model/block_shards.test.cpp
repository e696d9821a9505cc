// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/model/block_shards.hpp>

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/parameter_blocks.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace block_shards_test {

using namespace roundpipe;

namespace {

TensorTable table_of(std::vector<std::int64_t> const& sizes, DType type = DType::bf16) {
  TensorTable table;
  for (auto const size : sizes) {
    table.add({"t", {size}, type});
  }
  return table;
}

double elements_of(TensorTable const& table, BlockShard const& shard) {
  std::size_t elements = 0;
  for (std::size_t t = 0; t < table.size(); ++t) {
    elements += shard.of_tensor(t, table[t].shape.size()).size();
  }
  return static_cast<double>(elements);
}

}  // namespace

TEST_CASE("the shards of a block cover it once, in the order of ranks, whatever the type") {
  for (auto const& sizes : std::vector<std::vector<std::int64_t>>{
           {}, {0}, {1}, {5000}, {4096, 4096}, {100000}, {3, 70001, 0, 1, 16384, 5}}) {
    for (std::size_t ranks = 1; ranks < 8; ++ranks) {
      auto const narrow = table_of(sizes);
      auto const wide = table_of(sizes, DType::f32);
      auto const shards = cut_block(narrow, std::vector(ranks, 1.0));
      REQUIRE(shards.size() == ranks);
      for (auto const* table : {&narrow, &wide}) {
        Bytes bytes = 0;
        std::vector<std::size_t> elements(sizes.size());
        for (auto const& shard : shards) {
          auto const own = shard.bytes(*table);
          CHECK(own.begin == bytes);
          bytes = own.end;
          for (std::size_t t = 0; t < sizes.size(); ++t) {
            auto const size = (*table)[t].shape.size();
            auto const part = shard.of_tensor(t, size);
            if (part.size() == 0) {
              continue;
            }
            CHECK(part.begin == elements[t]);
            CHECK(part.begin % shard_grain == 0);
            elements[t] = part.end;
            // Where the part lies in the shard's own memory.
            auto const type = size_of((*table)[t].dtype);
            CHECK(own.begin + shard.offset(t, *table) == table->offset(t) + part.begin * type);
            CHECK(shard.offset(t, *table) % tensor_alignment_bytes == 0);
            CHECK(shard.offset(t, *table) + part.size() * type <= own.size());
          }
        }
        CHECK(bytes == table->bytes());
        for (std::size_t t = 0; t < sizes.size(); ++t) {
          CHECK(elements[t] == (*table)[t].shape.size());
        }
      }
    }
  }
}

TEST_CASE("shards are as equal as their grain allows") {
  auto const table = table_of({1 << 20, 100, 1 << 18});
  for (std::size_t ranks = 1; ranks < 9; ++ranks) {
    auto const fair = ((1U << 20U) + 100 + (1U << 18U)) / ranks;
    for (auto const& shard : cut_block(table, std::vector(ranks, 1.0))) {
      std::size_t elements = 0;
      for (std::size_t t = 0; t < table.size(); ++t) {
        elements += shard.of_tensor(t, table[t].shape.size()).size();
      }
      CHECK(elements + shard_grain > fair);
      CHECK(elements < fair + shard_grain + 1);
    }
  }
}

TEST_CASE("shards follow the shares of their ranks, and one of nothing is empty") {
  auto const table = table_of({1 << 20, 100, 1 << 18});
  auto const all = static_cast<double>((1U << 20U) + 100 + (1U << 18U));
  std::vector<double> const shares{0, 3, 0, 1, 4, 0};
  auto const shards = cut_block(table, shares);
  for (std::size_t r = 0; r < shares.size(); ++r) {
    CHECK(std::abs(elements_of(table, shards[r]) - all * shares[r] / 8) < shard_grain + 1);
    CHECK((shards[r].begin == shards[r].end) == (shares[r] == 0));
  }
}

TEST_CASE("blocks make up for the cuts of those before, so small ones are shared, too") {
  ParameterBlocks blocks;
  for (std::size_t b = 0; b < 40; ++b) {
    auto& block = blocks.blocks.emplace_back();
    block.specs.resize(1);
    block.master = block.gradient = table_of({b % 2 == 0 ? 3000 : 9000});
  }
  blocks.blocks[7].frozen = true;
  double const all = 20 * 3000 + 19 * 9000;
  std::vector<double> const shares{1, 5, 2};
  for (bool const whole : {false, true}) {
    shard_blocks(blocks, 1, shares, [&](BlockTensor) { return whole; });
    CHECK_FALSE(blocks.blocks[7].is_sharded());
    for (std::size_t r = 0; r < shares.size(); ++r) {
      double kept = 0;
      for (auto const& block : blocks.blocks) {
        kept += block.is_sharded() ? elements_of(block.master, block.shards[r]) : 0;
      }
      CHECK(std::abs(kept - all * shares[r] / 8) <= 9000);
    }
  }
}

TEST_CASE("a tensor that must be whole belongs to one rank") {
  auto const table = table_of({60000, 40000});
  auto const shards = cut_block(table, std::vector(4, 1.0), [](std::size_t t) { return t == 0; });
  CHECK(shards[0].of_tensor(0, 60000) == ElementRange{0, 0});
  CHECK(shards[1].of_tensor(0, 60000) == ElementRange{0, 60000});
  CHECK(shards[2].of_tensor(1, 40000) == ElementRange{0, 16384});
  CHECK(shards[3].of_tensor(1, 40000) == ElementRange{16384, 40000});
}

}  // namespace block_shards_test
