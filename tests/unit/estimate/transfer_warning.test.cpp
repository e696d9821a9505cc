// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/estimate/transfer_warning.hpp>

#include <roundpipe/estimate/roofline.hpp>
#include <support/error_of.hpp>
#include <support/shapes.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace transfer_warning_test {

using namespace roundpipe;
using test::error_of;
using test::rtx4090;

TEST_CASE("the warning for a round that is too small has both times and a sufficient size") {
  auto const shape = model_shape("llama3.1-8b");
  CHECK(transfer_warning(shape, rtx4090(), {4, 2048}, 1) ==
        "the parameters of a layer take 13.6 ms to upload and the checkpoints of a round 2.1 ms, "
        "its forward 11.7 ms for 1 micro-batch of 4 x 2048 tokens: transfers hide from 6 sequences "
        "a round on");
  auto const two = transfer_warning(shape, rtx4090(), {2, 2048}, 2);
  REQUIRE(two.has_value());
  CHECK(two->find("11.7 ms for 2 micro-batches of 2 x 2048 tokens") != std::string::npos);
}

TEST_CASE("only the sequences of a round count, not how micro-batches divide them") {
  for (auto const& shape : known_model_shapes()) {
    CAPTURE(shape.name);
    auto const least = least_batch(shape, rtx4090(), 2048).value();
    for (std::int64_t rows = 1; rows <= 8; ++rows) {
      for (std::int64_t micro_batches = 1; micro_batches <= 16; ++micro_batches) {
        CHECK(transfer_warning(shape, rtx4090(), {rows, 2048}, micro_batches).has_value() ==
              (rows * micro_batches < least));
      }
    }
  }
}

TEST_CASE("transfers that just hide are no reason for a warning") {
  auto const shape = model_shape("llama3.1-8b");
  auto device = rtx4090();
  device.upload_bytes_per_second = 0x1p34;  // so that the quotient is exact
  device.flops_per_second = operational_intensity(shape, {6, 2048}) * 0x1p34;
  REQUIRE(ridge_point(device) == operational_intensity(shape, {6, 2048}));
  CHECK_FALSE(transfer_warning(shape, device, {6, 2048}, 1).has_value());
}

TEST_CASE("when no number of sequences helps, the sentence says so") {
  auto device = rtx4090();
  device.upload_bytes_per_second = 1e6;
  auto const warning = transfer_warning(model_shape("qwen3-1.7b"), device, {4, 2048}, 8);
  REQUIRE(warning.has_value());
  CHECK(warning->find("no number of sequences hides the transfers") != std::string::npos);
}

TEST_CASE("empty rounds and rounds too large to count are refused") {
  auto const shape = model_shape("llama3.1-8b");
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  auto const code = [&](BatchShape micro_batch, std::int64_t micro_batches) {
    return error_of([&] { (void)transfer_warning(shape, rtx4090(), micro_batch, micro_batches); })
        .code();
  };
  CHECK(code({0, 2048}, 1) == Errc::invalid_argument);
  CHECK(code({1, 0}, 1) == Errc::invalid_argument);
  CHECK(code({1, 2048}, 0) == Errc::invalid_argument);
  CHECK(code({most / 2, 2048}, 3) == Errc::invalid_argument);
  auto device = rtx4090();
  device.upload_bytes_per_second = 0;
  CHECK(error_of([&] { (void)transfer_warning(shape, device, {1, 1}, 1); }).code() ==
        Errc::invalid_argument);
}

}  // namespace transfer_warning_test
