// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/attention/attention_plan.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

namespace cu = roundpipe::cu;
using roundpipe::AttentionShape;
using roundpipe::Bytes;
using roundpipe::DType;

namespace {

template <class F>
void for_each_shape(F&& f) {
  for (std::int64_t const rows : {1, 2, 7, 64}) {
    for (std::int64_t const length : {1, 127, 128, 129, 2048, 5000, 32768}) {
      for (std::int64_t const heads : {1, 4, 12, 32}) {
        for (std::int64_t const head_dim : {8, 64, 128, 256}) {
          for (auto const type : {DType::f32, DType::bf16}) {
            for (std::int64_t const group : {1, 2, 4}) {
              if (heads % group == 0) {
                f(AttentionShape{rows, length, heads, heads / group, head_dim, type});
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("scratch does not grow when an extent shrinks") {
  for (bool const deterministic : {false, true}) {
    cu::AttentionOptions const chosen{.deterministic = deterministic};
    for_each_shape([&](AttentionShape const& s) {
      auto const bytes = cu::attention_scratch_bytes(s, chosen);
      auto const cudnn = cu::detail::cudnn_scratch_bytes(s, chosen);
      for (auto const extent : {&AttentionShape::rows,
                                &AttentionShape::length,
                                &AttentionShape::heads,
                                &AttentionShape::kv_heads,
                                &AttentionShape::head_dim}) {
        auto smaller = s;
        smaller.*extent = (s.*extent + 1) / 2;
        CHECK(cu::attention_scratch_bytes(smaller, chosen) <= bytes);
        CHECK(cu::detail::cudnn_scratch_bytes(smaller, chosen) <= cudnn);
      }
    });
  }
}

TEST_CASE("scratch holds the row sums of our own kernels") {
  for_each_shape([](AttentionShape const& s) {
    CHECK(cu::attention_scratch_bytes(s) >= cu::detail::row_sums_bytes(s));
  });
}

TEST_CASE("slices fit into the scratch, and there are as few as possible") {
  for (bool const deterministic : {false, true}) {
    cu::AttentionOptions const chosen{.deterministic = deterministic, .scratch_mib = 200};
    for_each_shape([&](AttentionShape const& s) {
      auto const slice = cu::detail::attention_slice(s, chosen);
      auto const head = cu::detail::cudnn_head_bytes(s, deterministic);
      auto const room = cu::detail::cudnn_scratch_bytes(s, chosen);
      auto const group = s.heads / s.kv_heads;
      REQUIRE(slice.rows >= 1);  // here a group has at most 8 heads
      CHECK(slice.rows <= s.rows);
      CHECK(slice.kv_heads <= s.kv_heads);
      CHECK((slice.rows == 1 || slice.kv_heads == s.kv_heads));
      CHECK(static_cast<Bytes>(slice.rows * slice.kv_heads * group) * head <= room);
      auto const parts = (s.rows + slice.rows - 1) / slice.rows;
      if (parts > 1 && slice.kv_heads == s.kv_heads) {  // one part fewer would not fit
        auto const rows = (s.rows + parts - 2) / (parts - 1);
        CHECK(static_cast<Bytes>(rows * s.heads) * head > room - cu::detail::cudnn_fixed_bytes);
      }
    });
  }
}

TEST_CASE("a group of many long heads fits into no slice") {
  AttentionShape const s{1, 32768, 32, 1, 128, DType::bf16};
  CHECK(cu::detail::attention_slice(s, {.deterministic = true}).rows == 0);
  CHECK(cu::detail::attention_slice(s, {.deterministic = false, .scratch_mib = 512}).rows == 0);
}

TEST_CASE("by default cuDNN computes, in a fixed order; our own kernels need only row sums") {
  CHECK(cu::AttentionOptions{} == cu::AttentionOptions{.deterministic = true, .cudnn = true});
  AttentionShape const s{1, 256, 2, 2, 64, DType::bf16};
  CHECK(cu::attention_scratch_bytes(s) == cu::attention_scratch_bytes(s, {}));
  CHECK(cu::attention_scratch_bytes(s, {.deterministic = false, .cudnn = false}) ==
        cu::detail::row_sums_bytes(s));
}

TEST_CASE("an unsupported head size is named") {
  for (std::int64_t const size : {0, 1, 63, 258}) {
    auto const error = roundpipe::test::error_of(
        [&] { cu::check_head_dim("attention", {1, 1, 1, 1, size, DType::f32}); });
    CHECK(error.code() == roundpipe::Errc::unsupported);
    CHECK(error.message().find("heads of " + std::to_string(size) + " ") != std::string::npos);
  }
  cu::check_head_dim("attention", {1, 1, 1, 1, 256, DType::f32});
}
