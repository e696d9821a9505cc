// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/runtime/state/block_readers.hpp>

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/runtime/weight_access.hpp>
#include <support/held_blocks.hpp>
#include <support/host_parameters.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace block_readers_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

std::vector<BlockId> ids(std::vector<std::size_t> const& numbers) {
  return {numbers.begin(), numbers.end()};
}

/// The bytes of block 0's weights in every copy.
std::vector<std::byte> bytes_of(ParameterMemory const& memory) {
  std::vector<std::byte> bytes;
  for (auto const& copy : memory.copies(BlockId(0), 0)) {
    bytes.insert(bytes.end(), copy.bytes().begin(), copy.bytes().end());
  }
  return bytes;
}

}  // namespace

TEST_CASE("whoever waits for a block goes on when its last reader has released it") {
  auto const readers = std::make_shared<BlockReaders>(3);
  CHECK_FALSE(readers->is_held());
  readers->wait_for_all();
  std::optional<BlockHold> other(readers);
  BlockHold hold(readers);
  CHECK(readers->is_held());
  CHECK_FALSE(hold.wanted().valid());
  hold.release(BlockId(1));
  hold.release(BlockId(1));  // does nothing
  std::atomic<bool> passed = false;
  std::thread thread([&] {
    readers->wait(BlockId(1));
    passed = true;
  });
  while (!other->wanted().valid()) {
    std::this_thread::yield();
  }
  CHECK(other->wanted() == BlockId(1));
  CHECK_FALSE(hold.wanted().valid());  // it holds that block no more
  hold.release(BlockId(0));
  other->release(BlockId(0));  // wakes whoever waits
  for (int i = 0; i < 1000 && !passed; ++i) {
    std::this_thread::yield();
  }
  CHECK_FALSE(passed);
  other->release(BlockId(1));
  thread.join();
  CHECK_FALSE(other->wanted().valid());
  auto const waited = hold.waited_seconds();
  CHECK(waited > 0);
  readers->wait(BlockId(1));
  CHECK(hold.waited_seconds() == waited);
  CHECK(BlockHold(readers).waited_seconds() == 0);
  CHECK(readers->is_held());
  other.reset();
  CHECK(readers->is_held());
  hold.release(BlockId(2));
  CHECK_FALSE(readers->is_held());
}

TEST_CASE("all that overwrites weights and states waits for their readers") {
  HostParameters host({.type = DType::bf16});
  auto const& memory = host.memory;
  auto const& readers = memory.readers();
  std::vector<std::size_t> all;
  for (std::size_t b = 0; b < readers->blocks(); ++b) {
    all.push_back(b);
  }
  REQUIRE(all.size() > 1);
  auto const before = bytes_of(memory);
  auto const unchanged = [&] { CHECK(bytes_of(memory) == before); };
  host.land(BlockUseId(0), 1);
  CHECK(blocks_waited_for(
            readers, [&] { host.updater.update(BlockId(0), 1, 1); }, unchanged) == ids({0}));
  CHECK(bytes_of(memory) != before);
  CHECK(blocks_waited_for(readers, [&] { host.copier.copy(BlockId(0)); }) == ids({0}));

  WeightAccess const weights(memory, host.progress);
  std::vector<float> const values(memory.master(BlockId(1), 0, 0).size, 2);
  CHECK(blocks_waited_for(readers, [&] { weights.write({BlockId(1), 0}, values); }) == ids({1}));
  CHECK(blocks_waited_for(readers, [&] { weights.overwrite([](auto const&) {}); }) == ids(all));
  auto const own = weights.state(0);
  std::vector<ParameterState const*> parameters;
  memory.blocks().for_each([&](BlockTensor parameter) {
    parameters.push_back(&own.at(parameters.size()));
    CHECK(parameters.back()->block == parameter.block);
  });
  CHECK(blocks_waited_for(readers, [&] { weights.restore(parameters, {}); }) == ids(all));
}

TEST_CASE("memory goes when the last reader has, which may live on") {
  std::optional<HostParameters> host(std::in_place, HostParameters::Setup{});
  auto const readers = host->memory.readers();
  CHECK(blocks_waited_for(readers, [&] { host.reset(); }).size() == readers->blocks());
  BlockHold const hold(readers);
  CHECK_FALSE(hold.wanted().valid());
}

}  // namespace block_readers_test
