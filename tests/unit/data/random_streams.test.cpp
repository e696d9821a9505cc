// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/data/random_streams.hpp>

#include <roundpipe/core/random.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>

namespace random_streams_test {

using namespace roundpipe;
using detail::DataStream;

TEST_CASE("each seed, purpose, epoch and source draws numbers of its own") {
  std::set<double> drawn;
  std::size_t keys = 0;
  for (std::uint64_t const seed : {0, 1}) {
    for (auto const stream :
         {DataStream::order_of_epoch, DataStream::rows_of_source, DataStream::held_out}) {
      for (std::uint64_t const epoch : {0, 1, 2}) {
        for (std::size_t const source : {0, 1, 2}) {
          auto const key = detail::data_key(seed, stream, epoch, source);
          CHECK(normal(key, 7) == normal(detail::data_key(seed, stream, epoch, source), 7));
          drawn.insert(static_cast<double>(normal(key, 7)));
          ++keys;
        }
      }
    }
  }
  CHECK(drawn.size() == keys);
}

}  // namespace random_streams_test
