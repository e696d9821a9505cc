// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/plan/stage_chunks.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/policies/priority_transfer_engine.hpp>
#include <support/error_of.hpp>
#include <support/own_policies.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace stage_chunks_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

/// A toy model as one backward stage.
struct Toy {
  ModelDescription model;
  ParameterBlocks blocks;
  StageLayout stage;

  explicit Toy(ToyModelOptions const& options) : model(describe(toy_model(options), {2, 3})) {
    blocks = form_blocks(model);
    stage = lay_out_stage(
        model, blocks, StageKind::fused, {0, model.size()}, [](std::size_t) { return false; });
  }

  [[nodiscard]] std::vector<StageChunk> cut(std::size_t windows,
                                            ChunkFunction const& chunks) const {
    return cut_stage(blocks, stage, windows, chunks, [](UsePlace const&) { return true; });
  }
};

auto const engine = [](std::span<Bytes const> tensors, std::size_t windows) {
  return PriorityTransferEngine{}.chunks(tensors, windows);
};
auto const everything = [](UsePlace const&) { return true; };

}  // namespace

TEST_CASE("chunks hold every byte of every tensor of every use once") {
  Toy const toy({.dense = 3, .tied = true});
  for (std::size_t windows = 1; windows <= 5; ++windows) {
    std::map<std::pair<BlockUseId, std::size_t>, Bytes> bytes;
    for (auto const& chunk : toy.cut(windows, engine)) {
      Bytes in_chunk = 0;
      std::set<BlockUseId> uses;
      for (auto const& piece : chunk.pieces) {
        bytes[{piece.use, piece.tensor}] += piece.bytes;
        in_chunk += piece.bytes;
        uses.insert(piece.use);
      }
      CHECK(chunk.bytes == in_chunk);
      CHECK(chunk.window < windows);
      CHECK(std::set(chunk.uses.begin(), chunk.uses.end()) == uses);
      CHECK(chunk.uses.size() == uses.size());
    }
    for (std::size_t u = 0; u < toy.blocks.uses.size(); ++u) {
      BlockUseId const use(u);
      auto const& table = toy.blocks.block_of(use).master;
      for (std::size_t t = 0; t < table.size(); ++t) {
        CHECK(bytes[{use, t}] == table[t].bytes());
      }
    }
  }
}

TEST_CASE("unwanted tensors are in no chunk") {
  Toy const toy({.dense = 2, .frozen_dense = 1});
  std::set<BlockUseId> seen;
  for (auto const& chunk : cut_stage(
           toy.blocks, toy.stage, 2, engine, [](UsePlace const& place) { return place.trains; })) {
    seen.insert(chunk.uses.begin(), chunk.uses.end());
  }
  for (std::size_t u = 0; u < toy.blocks.uses.size(); ++u) {
    BlockUseId const use(u);
    CHECK(seen.contains(use) == toy.blocks.trains(use));
  }
}

TEST_CASE("pieces and chunks without bytes are left out") {
  Toy const toy({.dense = 2, .empty_parameters = true});
  std::size_t pieces = 0;
  for (auto const &chunk : toy.cut(3, [](auto tensors, std::size_t windows) {
         auto chunks = CopyAtOnce{}.chunks(tensors, windows);
         chunks.push_back({{{0, 0, 0}}, windows - 1, true});
         return chunks;
       })) {
    CHECK(chunk.window == 2);
    CHECK_FALSE(chunk.gated);
    for (auto const& piece : chunk.pieces) {
      CHECK(piece.bytes > 0);
      ++pieces;
    }
  }
  CHECK(pieces > 0);
}

TEST_CASE("whole gradients go in the order in which the backward completes them") {
  Toy const toy({.dense = 2, .frozen_dense = 1});
  auto const chunks =
      chunks_by_use(toy.blocks, toy.stage, [](UsePlace const& place) { return place.trains; });
  REQUIRE(chunks.size() == 3);  // of the loss, a dense layer and the input
  for (std::size_t c = 0; c + 1 < chunks.size(); ++c) {
    REQUIRE(chunks[c].uses.size() == 1);
    CHECK(toy.blocks.use(chunks[c + 1].uses.front()).layer <
          toy.blocks.use(chunks[c].uses.front()).layer);
  }
}

TEST_CASE("a chunk after the last window is refused") {
  Toy const toy({.dense = 1});
  auto const late = [](std::span<Bytes const> tensors, std::size_t windows) {
    return CopyAtOnce{}.chunks(tensors, windows + 1);
  };
  CHECK(error_of([&] { return cut_stage(toy.blocks, toy.stage, 2, late, everything); }).code() ==
        Errc::invalid_argument);
}

TEST_CASE("in layer order windows keep their bytes, and layers follow each other") {
  for (std::int64_t const width : {4, 40, 100}) {
    Toy const toy({.types = {.width = width}, .dense = 5, .empty_parameters = true});
    for (std::size_t windows = 1; windows <= 9; ++windows) {
      CAPTURE(windows);
      auto const chunks = toy.cut(windows, engine);
      auto const ordered = in_layer_order(chunks, toy.blocks, toy.stage);
      std::map<std::size_t, std::int64_t> difference;  // by window
      std::int64_t carried = 0;
      for (auto const& chunk : chunks) {
        difference[chunk.window] += static_cast<std::int64_t>(chunk.bytes);
      }
      std::pair last{BlockUseId(0), std::size_t{0}};  // use, tensor
      std::map<std::pair<BlockUseId, std::size_t>, Bytes> copied;
      for (auto const& chunk : ordered) {
        difference[chunk.window] -= static_cast<std::int64_t>(chunk.bytes);
        CHECK(chunk.gated);
        CHECK(std::ranges::is_sorted(chunk.uses));
        Bytes bytes = 0;
        for (auto const& piece : chunk.pieces) {
          std::pair const place{piece.use, piece.tensor};
          CHECK(last <= place);
          CHECK(piece.offset == copied[place]);
          CHECK(piece.offset % tensor_alignment_bytes == 0);
          CHECK(std::ranges::find(chunk.uses, piece.use) != chunk.uses.end());
          copied[place] += piece.bytes;
          bytes += piece.bytes;
          last = place;
        }
        CHECK(chunk.bytes == bytes);
      }
      for (auto const& [window, bytes] : difference) {
        carried += bytes;  // from this window to the next
        CHECK(carried >= 0);
        CHECK(carried < 256);
      }
      CHECK(carried == 0);
      for (auto const& [place, bytes] : copied) {
        CHECK(bytes == toy.blocks.block_of(place.first).master[place.second].bytes());
      }
    }
  }
}

TEST_CASE("chunks of a policy without gates keep their order") {
  Toy const toy({.dense = 2});
  auto const chunks = toy.cut(
      3, [](auto tensors, std::size_t windows) { return CopyAtOnce{}.chunks(tensors, windows); });
  auto const kept = in_layer_order(chunks, toy.blocks, toy.stage);
  REQUIRE(kept.size() == chunks.size());
  CHECK_FALSE(kept.front().gated);
  CHECK(kept.front().pieces.size() == chunks.front().pieces.size());
}

TEST_CASE("a policy that copies too little or too much is refused") {
  Toy const toy({.dense = 1});
  auto const nothing = [](std::span<Bytes const>, std::size_t) { return std::vector<Chunk>{}; };
  auto const twice = [](std::span<Bytes const> tensors, std::size_t windows) {
    auto chunks = CopyAtOnce{}.chunks(tensors, windows);
    chunks.push_back(chunks.front());
    return chunks;
  };
  for (ChunkFunction const& wrong : {ChunkFunction(nothing), ChunkFunction(twice)}) {
    CHECK(error_of([&] { return cut_stage(toy.blocks, toy.stage, 2, wrong, everything); }).code() ==
          Errc::invalid_argument);
  }
}

TEST_CASE("a use is counted in every chunk that holds a piece of the use") {
  std::vector<StageChunk> chunks(3);
  chunks[0].uses = {BlockUseId(1), BlockUseId(2)};
  chunks[2].uses = {BlockUseId(2)};
  CHECK(count_chunks(chunks, BlockUseId(0)) == 0);
  CHECK(count_chunks(chunks, BlockUseId(1)) == 1);
  CHECK(count_chunks(chunks, BlockUseId(2)) == 2);
}

}  // namespace stage_chunks_test
