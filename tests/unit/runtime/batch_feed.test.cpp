// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/runtime/batch_feed.hpp>

#include <roundpipe/system/aligned_memory.hpp>
#include <support/error_of.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <list>
#include <string>
#include <vector>

namespace batch_feed_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a call takes a batch of its size") {
  ToyData const data(6, {2, 3}, 1);
  require_call_size(data.batch(), 3, 2);
  auto const error = error_of([&] { require_call_size(data.batch(), 2, 2); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find("6 micro-batches; the pipeline runs 4") != std::string::npos);
}

TEST_CASE("micro-batches of any shape are staged from the first on, and their terms counted") {
  auto const model = toy_model({});
  BatchFeed feed(model, {2, 3});
  ToyData data(std::vector<BatchShape>{{2, 3}, {1, 2}, {2, 1}}, 5);
  auto const batch = data.batch();
  auto const sliced = feed.slice(batch);
  std::size_t terms = 0;
  for (auto const mask : data.mask()) {
    terms += 3U * mask;
  }
  CHECK((sliced.gradient_scale == 0 ||
         terms % static_cast<std::size_t>(1 / sliced.gradient_scale + 0.5) == 0));

  std::list<AlignedMemory> memory;
  CallData call;
  auto const take = [&](Bytes bytes) { return memory.emplace_back(bytes).bytes(); };
  take_staging(call, 2, feed.capacity().batch.tensors.bytes(), 8, take);
  CHECK(call.batch.size() == 2);
  CHECK(call.losses[1].size() == sizeof(double));
  CHECK(call.results[1].size() == 8);
  feed.stage(batch, sliced, 1, 2, call);
  REQUIRE(call.shapes.size() == 2);
  CHECK(call.shapes[0]->model.capacity == BatchShape{1, 2});
  for (std::size_t m = 0; m < 2; ++m) {
    auto const& table = call.shapes[m]->batch.tensors;
    for (std::size_t t = 0; t < table.size(); ++t) {
      auto const& from = sliced.slices[m + 1][t].bytes;
      CHECK(std::memcmp(call.batch[m].data() + table.offset(t), from.data(), from.size()) == 0);
    }
  }
}

TEST_CASE("a batch beyond the capacity is refused") {
  auto const model = toy_model({});
  BatchFeed feed(model, {2, 3});
  ToyData const data(1, {2, 4}, 1);
  CHECK(error_of([&] { (void)feed.slice(data.batch()); }).code() == Errc::invalid_argument);
}

}  // namespace batch_feed_test
