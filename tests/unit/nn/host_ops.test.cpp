// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/nn/host_ops.hpp>

#include <roundpipe/core/random.hpp>
#include <support/error_of.hpp>
#include <support/nn_harness.hpp>
#include <support/owned_tensor.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace host_ops_test {

namespace {

using namespace roundpipe;
using test::read;
using test::relative_difference;
using test::write;
using test::write_random;

using Owned = test::OwnedTensor;

Owned random(Shape const& shape, std::uint32_t name, DType type = DType::f32) {
  Owned t(shape, type);
  write_random(t, name, 1.0, 0.0);
  return t;
}

struct Fixture {
  HostStream stream;
  nn::HostOps<float> ops{stream};
};

void check_misfit(std::function<void()> const& f, std::string const& words) {
  auto const error = test::error_of(f);
  INFO(error.message());
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message().find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("doubles are rounded to bf16 once, to nearest, ties to even") {
  auto const check = [](double value) {
    auto const rounded = nn::detail::convert<BFloat16>(value);
    auto const got = static_cast<double>(rounded);
    // Neither neighbour of the result is nearer.
    auto const bits = rounded.bits();
    for (int const step : {-1, 1}) {
      auto const neighbour = static_cast<double>(
          BFloat16::from_bits(static_cast<std::uint16_t>(static_cast<int>(bits) + step)));
      if (!std::isfinite(neighbour) || (neighbour < 0) != (got < 0)) {
        continue;
      }
      auto const mine = std::abs(got - value);
      auto const other = std::abs(neighbour - value);
      CHECK(mine <= other);
      CHECK((mine != other || (bits & 1) == 0));
    }
  };
  for (std::uint64_t i = 0; i < 3000; ++i) {
    auto const word = random_word({1, 2, 3, 4, 5}, i);
    auto const upper = 0x0080 + word % 0x7e80;  // a finite bf16 number
    auto const tie = static_cast<double>(std::bit_cast<float>(upper << 16 | 0x8000U));
    auto const nudge = static_cast<int>(word >> 29) - 3;
    check(tie * (1 + nudge * 0x1p-40));
    check(-tie * (1 + nudge * 0x1p-52));
    check(tie * (1 + nudge * 0x1p-25));
  }
  CHECK(std::isnan(
      static_cast<float>(nn::detail::convert<BFloat16>(std::numeric_limits<double>::quiet_NaN()))));
  CHECK(std::isinf(static_cast<float>(nn::detail::convert<BFloat16>(1e300))));
  CHECK(static_cast<float>(nn::detail::convert<BFloat16>(-0.0)) == 0);
  CHECK(std::signbit(static_cast<float>(nn::detail::convert<BFloat16>(-0.0))));
}

TEST_CASE("doubles are rounded to f16 once, to nearest, ties to even") {
  auto const rounded = [](double value) { return nn::detail::convert<Float16>(value).bits(); };
  for (std::uint16_t bits = 0; bits < 0x7c00; ++bits) {
    auto const next = static_cast<std::uint16_t>(bits + 1);
    auto const low = static_cast<double>(Float16::from_bits(bits));
    auto const high = next == 0x7c00 ? 0x1p16 : static_cast<double>(Float16::from_bits(next));
    auto const tie = (low + high) / 2;
    auto const even = bits % 2 == 0 ? bits : next;
    REQUIRE(rounded(tie) == even);
    REQUIRE(rounded(-tie) == (even | 0x8000));
    for (double const nudge : {0x1p-52, 0x1p-40, 0x1p-25}) {  // as a float this would be a tie
      REQUIRE(rounded(tie * (1 - nudge)) == bits);
      REQUIRE(rounded(tie * (1 + nudge)) == next);
      REQUIRE(rounded(-tie * (1 + nudge)) == (next | 0x8000));
    }
    REQUIRE(nn::detail::convert<double>(Float16::from_bits(bits)) == low);
  }
  CHECK(rounded(1e300) == 0x7c00);
  CHECK(rounded(1e-300) == 0);
  CHECK(std::isnan(
      static_cast<float>(nn::detail::convert<Float16>(std::numeric_limits<double>::quiet_NaN()))));
}

TEST_CASE("scratch is aligned, distinct and as long as requested") {
  for (int round = 0; round < 3; ++round) {
    nn::detail::HostScratch scratch;
    std::vector<std::pair<std::byte*, std::size_t>> parts;
    for (std::size_t const count : {1, 100, 3000, 1, 5'000'000, 7}) {
      auto* const memory = scratch.take<std::byte>(count);
      CHECK(reinterpret_cast<std::uintptr_t>(memory) % 256 == 0);
      for (auto const& [other, size] : parts) {
        CHECK((memory + count <= other || other + size <= memory));
      }
      std::fill_n(memory, count, std::byte{1});
      parts.emplace_back(memory, count);
    }
  }
}

TEST_CASE("batches of random words equal the words of random_word") {
  RandomKey const key{0x123456789abcdefULL, 7, 6, 5, 4};
  nn::detail::RandomWords words(key);
  for (std::uint64_t const first :
       {std::uint64_t{0}, std::uint64_t{256}, (std::uint64_t{1} << 34) - 128}) {
    auto const& drawn = words.draw(first);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      CHECK(drawn[i] == random_word(key, first + i));
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "dropout drops single elements at its rate, and adds its addend") {
  Shape const shape{13, 1001};
  auto const x = random(shape, 1);
  auto const c = random(shape, 2);
  Owned const y(shape, DType::f32);
  DropoutOptions const options{0.3, {1, 2, 3, 4, 5}};
  ops.dropout(y, x, c, options);
  auto const in = read(x);
  auto const added = read(c);
  auto const out = read(y);
  std::size_t dropped = 0;
  bool right = true;
  for (std::size_t i = 0; i < in.size(); ++i) {
    bool const drops = static_cast<double>(uniform(random_word(options.key, i))) < 0.3;
    dropped += drops ? 1 : 0;
    right = right && std::abs(out[i] - (drops ? 0 : in[i] / 0.7) - added[i]) < 1e-5;
  }
  CHECK(right);
  auto const expected = 0.3 * static_cast<double>(in.size());
  CHECK(std::abs(static_cast<double>(dropped) - expected) < 5 * std::sqrt(0.7 * expected));
  // In place, and over the addend, as the operation allows.
  ops.dropout(x, x, absent, options);
  ops.dropout(c, x, c, {0.0, {}});
  CHECK(relative_difference(read(c), out) < 1e-7);
}

TEST_CASE("products match plain loops for every combination of types") {
  HostStream stream;
  nn::HostOps<double> const wide(stream);
  nn::HostOps<float> const narrow(stream);
  DType const types[] = {DType::f64, DType::f32, DType::bf16, DType::f16};
  for (auto const type : types) {
    for (auto const out_type : types) {
      auto const x = random({2, 3, 5}, 1, type);
      auto const w = random({7, 5}, 2, type);
      auto const c = random({6, 7}, 3, type);
      Owned const y({6, 7}, out_type);
      auto const a = read(x);
      auto const b = read(w);
      auto expected = read(c);
      for (std::size_t i = 0; i < 6; ++i) {
        for (std::size_t j = 0; j < 7; ++j) {
          for (std::size_t k = 0; k < 5; ++k) {
            expected[i * 7 + j] += a[i * 5 + k] * b[j * 5 + k];
          }
        }
      }
      auto const tolerance = out_type == DType::bf16 ? 4e-3 : out_type == DType::f16 ? 5e-4 : 3e-7;
      wide.linear(y, x, w, c);
      CHECK(relative_difference(read(y), expected) < tolerance);
      narrow.linear(y, x, w, c);
      CHECK(relative_difference(read(y), expected) < tolerance);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "a product can accumulate into its own output") {
  auto const x = random({4, 5}, 1);
  auto const w = random({3, 5}, 2);
  Owned const y({4, 3}, DType::f32);
  Owned const twice({4, 3}, DType::f32);
  ops.linear(y, x, w);
  ops.linear(twice, x, w);
  ops.linear(twice, x, w, twice);
  auto expected = read(y);
  for (auto& v : expected) {
    v *= 2;
  }
  CHECK(relative_difference(read(twice), expected) < 1e-6);
  Owned const dx({4, 5}, DType::f32);
  ops.linear_input_gradient(dx, y, w);
  ops.linear_input_gradient(dx, y, w, dx);
  Owned const once({4, 5}, DType::f32);
  ops.linear_input_gradient(once, y, w);
  expected = read(once);
  for (auto& v : expected) {
    v *= 2;
  }
  CHECK(relative_difference(read(dx), expected) < 1e-6);
}

TEST_CASE_FIXTURE(Fixture, "a sum is computed in f64, in order, and scaled") {
  Owned const terms({3}, DType::f32);
  write(terms, std::vector<double>{16777216.0, 1.0, 1.0});  // f32 would lose the ones
  double total = 0;
  ops.sum({&total, 1}, terms, 0.5);
  CHECK(total == 8388609.0);
}

TEST_CASE("operations only enqueue, and capture their arguments") {
  test::DeferredStream stream;
  auto const x = random({4, 5}, 1);
  auto const w = random({3, 5}, 2);
  auto const y = random({4, 3}, 3);
  auto const before = read(y);
  {
    auto const handle = std::make_unique<nn::HostOps<float, test::DeferredStream>>(stream);
    auto const tensors = std::make_unique<std::vector<DeviceTensor>>(
        std::vector<DeviceTensor>{*y, *x, *w});  // these views are gone when the stream runs
    handle->linear(tensors->at(0), tensors->at(1), tensors->at(2));
  }
  CHECK(read(y) == before);
  stream.run();
  CHECK(read(y) != before);
}

TEST_CASE_FIXTURE(Fixture,
                  "sums of gradients may be absent, and the other results keep their bits") {
  auto const x = random({4, 6}, 1);
  auto const dy = random({4, 6}, 2);
  auto const gain = random({6}, 3);
  auto const dgain = random({6}, 4);
  Owned const dx({4, 6}, DType::f32);
  Owned const alone({4, 6}, DType::f32);
  ops.rms_norm_backward(dx, dgain, dy, x, gain, absent, 1e-5);
  ops.rms_norm_backward(alone, absent, dy, x, gain, absent, 1e-5);
  CHECK(read(dx) == read(alone));
  auto const sum = read(dgain);
  write_random(dgain, 4, 1.0, 0.0);
  ops.rms_norm_backward(absent, dgain, dy, x, gain, absent, 1e-5);
  CHECK(read(dgain) == sum);
  ops.rms_norm_backward(absent, absent, dy, x, gain, absent, 1e-5);

  auto const q = random({2, 3, 4, 2}, 5);
  auto const dq = random({2, 3, 4, 2}, 6);
  auto const head_gain = random({2}, 7);
  auto const dhead_gain = random({2}, 8);
  Owned const first({2, 3, 4, 2}, DType::f32);
  Owned const second({2, 3, 4, 2}, DType::f32);
  ops.rotary_backward(first, dhead_gain, dq, q, head_gain, {});
  ops.rotary_backward(second, absent, dq, q, head_gain, {});
  CHECK(read(first) == read(second));

  Owned const tokens({4}, DType::i32);
  ops.linear_weight_gradient(absent, dy, x);
  ops.bias_gradient(absent, dy);
  ops.embedding_backward(absent, dy, tokens);
}

TEST_CASE_FIXTURE(Fixture, "operands that do not fit are refused when the operation is enqueued") {
  auto const x = random({4, 6}, 1);
  auto const w = random({3, 6}, 2);
  auto const y = random({4, 3}, 3);
  auto const gain = random({6}, 4);
  auto const narrow = random({3, 6}, 5, DType::bf16);
  Owned const tokens({4}, DType::i32);
  check_misfit([&] { ops.linear(x, x, w); }, "linear: an operand must have 12 elements, not f32");
  check_misfit([&] { ops.linear(y, y, random({3, 5}, 1)); }, "rows of 5, not f32[4, 3]");
  check_misfit([&] { ops.linear(y, x, gain); }, "the shape [out, in], not f32[6]");
  check_misfit([&] { ops.linear(y, x, w, x); }, "12 elements, not f32[4, 6]");
  check_misfit([&] { ops.linear(y, x, absent); }, "a floating tensor, not no tensor");
  check_misfit([&] { ops.linear(y, tokens, w); }, "a floating tensor, not i32[4]");
  check_misfit([&] { ops.linear_input_gradient(y, y, w); }, "linear_input_gradient");
  check_misfit([&] { ops.linear_weight_gradient(narrow, y, x); }, "accumulation type");
  check_misfit([&] { ops.add_bias(x, random({5}, 1)); },
               "add_bias: an operand must have rows of 5");
  check_misfit([&] { ops.add_bias(x, gain, y); }, "24 elements, not f32[4, 3]");
  check_misfit([&] { ops.add_bias(x, tokens); }, "a floating tensor, not i32[4]");
  check_misfit([&] { ops.bias_gradient(random({5}, 1), y); },
               "bias_gradient: an operand must have rows of 5");
  check_misfit([&] { ops.bias_gradient(random({6}, 1, DType::bf16), x); }, "accumulation type");
  check_misfit([&] { ops.rms_norm(x, x, w, 1e-5); }, "rms_norm: an operand must have rows of 18");
  check_misfit([&] { ops.rms_norm_backward(y, gain, x, x, gain, absent, 1e-5); }, "24 elements");
  auto const q = random({2, 3, 4, 2}, 1);
  auto const k = random({2, 3, 2, 2}, 2);
  auto const three = random({2, 3, 3, 2}, 3);
  auto const odd = random({2, 3, 4, 3}, 4);
  auto const lse = random({2, 4, 3}, 5);
  check_misfit([&] { ops.rotary(q, w, absent, {}); }, "[rows, length, heads, head_dim]");
  check_misfit([&] { ops.rotary(odd, odd, absent, {}); }, "head_dim must be even");
  check_misfit([&] { ops.rotary(q, q, gain, {}); }, "2 elements, not f32[6]");
  check_misfit([&] { ops.rotary_backward(q, gain, q, q, random({2}, 1), {}); }, "2 elements");
  check_misfit([&] { ops.rotary_backward(absent, absent, q, q, absent, {}); }, "no tensor");
  check_misfit([&] { ops.attention(q, lse, q, three, three); }, "keys must fit queries");
  check_misfit([&] { ops.attention(q, lse, q, k, q); }, "attention: an operand must have 24");
  check_misfit([&] { ops.attention(q, lse, q, k, k, -1); }, "at least one position");
  check_misfit([&] { ops.attention_backward(q, k, k, q, q, k, k, q, lse, -2); }, "not -2");
  check_misfit([&] { ops.attention(q, w, q, k, k); }, "24 elements, not f32[3, 6]");
  check_misfit([&] { ops.attention_backward(q, q, q, q, q, k, k, q, lse); }, "24 elements");
  check_misfit([&] { ops.swiglu(x, x, y); }, "swiglu: an operand must have 24 elements");
  check_misfit([&] { ops.dropout(x, x, y, {0.1, {}}); }, "24 elements, not f32[4, 3]");
  check_misfit([&] { ops.dropout(x, x, absent, {1.0, {}}); }, "the rate must be in [0, 1)");
  check_misfit([&] { ops.embedding(x, gain, w); }, "indices must be 6 i32 values");
  check_misfit([&] { ops.embedding(y, tokens, w); }, "24 elements, not f32[4, 3]");
  check_misfit([&] { ops.embedding_backward(narrow, x, tokens); }, "accumulation type");
  check_misfit([&] { ops.cross_entropy(y, gain, y, tokens, 0); }, "4 elements, not f32[6]");
  check_misfit([&] { ops.cross_entropy(y, random({4}, 1), y, gain, 0); },
               "4 i32 values, not f32[6]");
  check_misfit([&] { ops.sum({}, x, 1.0); }, "the total must be one number");
}

}  // namespace host_ops_test
