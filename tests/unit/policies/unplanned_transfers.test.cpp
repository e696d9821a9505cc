// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/policies/unplanned_transfers.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace unplanned_transfers_test {

using namespace roundpipe;

TEST_CASE("unplanned transfers are one chunk of whole tensors that waits for nothing") {
  std::vector<Bytes> const tensors{8, 0, 24};
  auto const chunks = UnplannedTransfers{}.chunks(tensors, 4);
  REQUIRE(chunks.size() == 1);
  CHECK(chunks[0].pieces == std::vector<Piece>{{0, 0, 8}, {2, 0, 24}});
  CHECK(chunks[0].bytes() == 32);
  CHECK_FALSE(chunks[0].gated);
  CHECK(UnplannedTransfers{}.chunks(std::vector<Bytes>{0}, 4).empty());
}

}  // namespace unplanned_transfers_test
