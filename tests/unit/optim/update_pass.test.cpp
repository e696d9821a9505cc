// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/optim/update_pass.hpp>

#include <roundpipe/core/convert.hpp>
#include <roundpipe/core/simd_level.hpp>
#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/system/worker_pool.hpp>
#include <support/error_of.hpp>
#include <support/optimizer_check.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

namespace update_pass_test {

namespace {

using namespace roundpipe;
using roundpipe::test::error_of;
using roundpipe::test::gradients;

constexpr RandomKey rounding{.seed = 3, .step = 1, .layer = 4};

/// The types of an update's arrays. No type for the master copy means no master copy.
struct Types {
  DType weights;
  DType gradient;
  DType states;
  std::optional<DType> master;
};

constexpr std::array all_types{
    Types{DType::f32, DType::f32, DType::f32, std::nullopt},
    Types{DType::f32, DType::f32, DType::f32, DType::f32},
    Types{DType::f32, DType::bf16, DType::f32, DType::bf16},
    Types{DType::f32, DType::f16, DType::f32, DType::f16},
    Types{DType::f32, DType::bf16, DType::bf16, DType::bf16},
    Types{DType::bf16, DType::bf16, DType::f32, DType::bf16},
    Types{DType::bf16, DType::bf16, DType::bf16, DType::bf16},
    Types{DType::bf16, DType::f32, DType::bf16, DType::bf16},
    Types{DType::bf16, DType::f16, DType::bf16, DType::bf16},
};

/// An array with its own memory; nobody may touch the 64 bytes before and after the array.
class Owned {
 public:
  static constexpr std::size_t guard = 64;

  Owned() = default;
  Owned(std::vector<float> const& values, DType type, std::size_t shift = 0)
      : shift_(shift * size_of(type)),
        size_(values.size()),
        type_(type),
        memory_(64 + 2 * guard + shift_ + values.size() * size_of(type), std::byte{0x5a}) {
    narrow(values, type, array().bytes());
  }

  [[nodiscard]] HostArray array() {
    auto const at = reinterpret_cast<std::uintptr_t>(memory_.data());
    auto const begin = (at + 63) / 64 * 64 - at + guard + shift_;
    return {memory_.data() + begin, size_, type_};
  }
  [[nodiscard]] std::vector<float> values() {
    std::vector<float> result(size_);
    widen(array().bytes(), type_, result, false);
    return result;
  }
  [[nodiscard]] std::vector<std::byte> bytes() {
    auto const span = array().bytes();
    return {span.begin(), span.end()};
  }
  [[nodiscard]] bool guards_hold() {
    auto const begin = static_cast<std::size_t>(array().data - memory_.data());
    auto const end = begin + array().bytes().size();
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      if ((i < begin || i >= end) && memory_[i] != std::byte{0x5a}) {
        return false;
      }
    }
    return true;
  }

 private:
  std::size_t shift_ = 0;
  std::size_t size_ = 0;
  DType type_ = DType::f32;
  std::vector<std::byte> memory_;
};

/// All arrays of a parameter.
struct Arrays {
  Owned weights;
  Owned gradient;
  std::vector<Owned> states;
  std::optional<Owned> master;

  Arrays(std::size_t size, std::size_t state_count, Types const& types, std::size_t shift = 0) {
    auto first = gradients(size, 100);
    for (auto& weight : first) {
      weight += 0.5F;
    }
    weights = Owned(first, types.weights, shift);
    gradient = Owned(gradients(size, 101), types.gradient, shift);
    for (std::size_t k = 0; k < state_count; ++k) {
      auto state = gradients(size, 102 + k);
      std::ranges::transform(state, state.begin(), [](float x) { return std::abs(x); });
      states.emplace_back(state, types.states, shift);
    }
    if (types.master) {
      master = Owned(std::vector<float>(size, 9), *types.master, shift);
    }
  }

  /// Calls `f(arrays)` with elements [begin, end).
  template <class F>
  void with_part(std::size_t begin, std::size_t end, F const& f) {
    std::vector<HostArray> of_states;
    for (auto& state : states) {
      of_states.push_back(state.array().part(begin, end));
    }
    f(UpdateArrays{weights.array().part(begin, end),
                   gradient.array().part(begin, end),
                   of_states,
                   master ? master->array().part(begin, end) : HostArray{}});
  }

  [[nodiscard]] bool same_bits(Arrays& other) {
    auto same = weights.bytes() == other.weights.bytes();
    for (std::size_t k = 0; k < states.size(); ++k) {
      same = same && states[k].bytes() == other.states[k].bytes();
    }
    return same && (!master || master->bytes() == other.master->bytes());
  }

  [[nodiscard]] bool guards_hold() {
    return weights.guards_hold() && gradient.guards_hold() &&
           std::ranges::all_of(states, [](Owned& state) { return state.guards_hold(); }) &&
           (!master || master->guards_hold());
  }
};

template <Optimizer O>
void update(O const& optimizer,
            Arrays& arrays,
            std::size_t part,
            std::size_t size,
            std::size_t first_element = 0) {
  for (std::size_t begin = 0; begin < size; begin += part) {
    arrays.with_part(begin, std::min(size, begin + part), [&](UpdateArrays const& a) {
      update_pass(optimizer,
                  {.step = 2, .gradient_factor = 0.5F, .first_element = first_element + begin},
                  a,
                  rounding);
    });
  }
}

/// Whether a pass equals these steps: widen, update floats, round.
template <Optimizer O>
void check_against_floats(O const& optimizer, Types const& types) {
  for (std::size_t const size : {0, 1, 1023, 1024, 1025, 5000}) {
    Arrays arrays(size, optimizer.state_arrays(), types);
    auto w = arrays.weights.values();
    auto const g = arrays.gradient.values();
    std::vector<std::vector<float>> states;
    std::vector<HostSpan<float>> spans;
    for (auto& state : arrays.states) {
      states.push_back(state.values());
    }
    for (auto& state : states) {
      spans.emplace_back(state);
    }
    auto const old_weights = arrays.weights.bytes();
    auto const old_gradient = arrays.gradient.bytes();
    optimizer.update({.step = 2, .gradient_factor = 0.5F}, w, g, spans);
    update(optimizer, arrays, std::max<std::size_t>(size, 1), size);

    for (std::size_t k = 0; k < states.size(); ++k) {
      if (types.states == DType::bf16) {
        round_stochastically(states[k], rounding, k + 1);
      }
      CHECK(arrays.states[k].values() == states[k]);
    }
    if (types.weights == DType::bf16) {
      CHECK(arrays.weights.bytes() == old_weights);
      round_stochastically(w, rounding, 0);
      CHECK(arrays.master->values() == w);
    } else {
      CHECK(arrays.weights.values() == w);
      if (types.master) {
        CHECK(arrays.master->bytes() == Owned(w, *types.master).bytes());
      }
    }
    CHECK(arrays.gradient.bytes() == old_gradient);
    CHECK(arrays.guards_hold());
  }
}

struct NineStates {
  [[nodiscard]] std::size_t state_arrays() const { return 9; }
  void update(UpdateContext const&,
              HostSpan<float>,
              HostSpan<float const>,
              std::span<HostSpan<float> const>) const {}
};

}  // namespace

/// An optimizer that does not tell its element rule.
template <Optimizer O>
struct WithoutRule {
  O optimizer;

  [[nodiscard]] std::size_t state_arrays() const { return optimizer.state_arrays(); }
  void update(UpdateContext const& context,
              HostSpan<float> weights,
              HostSpan<float const> gradients,
              std::span<HostSpan<float> const> states) const {
    optimizer.update(context, weights, gradients, states);
  }
};

TEST_CASE("a pass widens, updates floats and rounds, for all types") {
  for (auto const& types : all_types) {
    check_against_floats(AdamW{}, types);
    check_against_floats(Sgd{}, types);
    check_against_floats(Sgd({.momentum = 0.9}), types);
  }
}

TEST_CASE("a pass gives the same bits for every cut, alignment, thread count and instruction set") {
  constexpr std::size_t size = 3000;
  AdamW const adamw;
  for (auto const& types : all_types) {
    Arrays whole(size, 2, types);
    update(adamw, whole, size, size);
    for (auto const level : simd_levels()) {
      SimdLevelOverride const use(level);
      for (std::size_t const part : {17, 64, 1000, 1024, 2999, 3000}) {
        for (std::size_t const shift : {0, 1}) {
          Arrays parts(size, 2, types, shift);
          update(adamw, parts, part, size);
          CHECK(parts.same_bits(whole));
          CHECK(parts.guards_hold());
        }
      }
      for (std::size_t const threads : {1, 2, 3, 4}) {
        Arrays shared(size, 2, types);
        WorkerPool pool(threads);
        pool.for_each_part(size, 64, [&](std::size_t begin, std::size_t end) {
          shared.with_part(begin, end, [&](UpdateArrays const& a) {
            update_pass(
                adamw, {.step = 2, .gradient_factor = 0.5F, .first_element = begin}, a, rounding);
          });
        });
        CHECK(shared.same_bits(whole));
      }
    }
  }
}

TEST_CASE("each update learns where its part begins in the parameter") {
  struct Numbering {
    static std::size_t state_arrays() { return 0; }
    void update(UpdateContext const& context,
                HostSpan<float> weights,
                HostSpan<float const>,
                std::span<HostSpan<float> const>) const {
      CHECK(context.parameter.name == "numbered");
      std::iota(weights.begin(), weights.end(), static_cast<float>(context.first_element));
    }
  };
  std::vector<float> weights(2 * update_tile_size + 5);
  std::vector<float> gradient(weights.size());
  auto const array_of = [](std::vector<float>& values) {
    return HostArray{reinterpret_cast<std::byte*>(values.data()), values.size(), DType::f32};
  };
  update_pass(Numbering{},
              {.parameter = {.name = "numbered"}, .first_element = 7},
              {array_of(weights), array_of(gradient), {}, {}},
              rounding);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    REQUIRE(weights[i] == static_cast<float>(7 + i));
  }
}

TEST_CASE("an update as a whole is one call, and rounds to the bits of an update in parts") {
  struct Counting {
    AdamW rule{};
    std::size_t* calls;
    std::size_t state_arrays() const { return rule.state_arrays(); }
    void update(UpdateContext const& context,
                HostSpan<float> weights,
                HostSpan<float const> gradients,
                std::span<HostSpan<float> const> states) const {
      ++*calls;
      rule.update(context, weights, gradients, states);
    }
  };
  for (auto const& types : all_types) {
    for (std::size_t const size : {std::size_t{1}, std::size_t{5000}, streaming_pass_size + 77}) {
      Arrays parts(size, 2, types);
      Arrays whole(size, 2, types);
      update(AdamW{}, parts, 999, size);
      std::size_t calls = 0;
      whole.with_part(0, size, [&](UpdateArrays const& a) {
        auto const widened = widened_arrays(a);
        CHECK(widened == std::size_t{types.weights != DType::f32} +
                             std::size_t{types.gradient != DType::f32} +
                             2 * std::size_t{types.states != DType::f32});
        Counting const optimizer{.calls = &calls};
        UpdateContext const context{.step = 2, .gradient_factor = 0.5F};
        std::vector<float> scratch(widened * size);
        if (!scratch.empty()) {
          auto const less = HostSpan<float>(scratch).subspan(1);
          CHECK(error_of([&] { update_whole(optimizer, context, a, rounding, less); }).code() ==
                Errc::invalid_argument);
        }
        CHECK(calls == 0);
        update_whole(optimizer, context, a, rounding, scratch);
      });
      CHECK(calls == 1);
      CHECK(whole.same_bits(parts));
      CHECK(whole.guards_hold());
    }
  }
}

TEST_CASE("an element rule gives the same bits in registers as in tiles") {
  auto const check = [](auto const& optimizer, DType gradient, SimdLevel level) {
    SimdLevelOverride const use(level);
    constexpr std::size_t size = 2500;
    Types const types{DType::bf16, gradient, DType::bf16, DType::bf16};
    Arrays whole(size, optimizer.state_arrays(), types);
    Arrays parts(size, optimizer.state_arrays(), types);
    update(optimizer, whole, size, size);
    update(WithoutRule<std::decay_t<decltype(optimizer)>>{optimizer}, parts, 777, size);
    CHECK(whole.same_bits(parts));
    CHECK(whole.guards_hold());
  };
  for (auto const level : simd_levels()) {
    for (auto const gradient : {DType::bf16, DType::f32}) {
      check(AdamW{}, gradient, level);
      check(Sgd{}, gradient, level);
      check(Sgd({.momentum = 0.9, .nesterov = true}), gradient, level);
    }
  }
}

TEST_CASE("a large pass, which writes the master copy past the caches, gives the same bits") {
  constexpr std::size_t size = streaming_pass_size + 77;
  for (auto const& types : all_types) {
    Sgd const sgd({.momentum = 0.5});
    for (auto const level : simd_levels()) {
      SimdLevelOverride const use(level);
      for (std::size_t const first : {0, 7}) {  // from 7 on, pairs are not aligned
        Arrays small(size, 1, types);
        Arrays large(size, 1, types);
        Arrays tiled(size, 1, types);
        update(sgd, small, 1024, size, first);
        update(sgd, large, size, size, first);
        update(WithoutRule<Sgd>{sgd}, tiled, size, size, first);
        CHECK(large.same_bits(small));
        CHECK(large.same_bits(tiled));
        CHECK(large.guards_hold());
      }
      Arrays copied(size, 1, types);
      copied.with_part(0, size, copy_pass);
      if (types.master) {
        CHECK(copied.master->bytes() == Owned(copied.weights.values(), *types.master).bytes());
      }
      CHECK(copied.guards_hold());
    }
  }
}

TEST_CASE("weights may be their own master copy") {
  constexpr std::size_t size = 2000;
  for (auto const type : {DType::f32, DType::bf16}) {
    Arrays apart(size, 2, {type, DType::bf16, DType::f32, type});
    update(AdamW{}, apart, size, size);
    Arrays arrays(size, 2, {type, DType::bf16, DType::f32, std::nullopt});
    arrays.with_part(0, size, [&](UpdateArrays a) {
      a.master = a.weights;
      update_pass(AdamW{}, {.step = 2, .gradient_factor = 0.5F}, a, rounding);
    });
    CHECK(arrays.weights.bytes() == apart.master->bytes());
    arrays.with_part(0, size, [&](UpdateArrays a) {
      a.master = a.weights;
      copy_pass(a);
    });
    CHECK(arrays.weights.bytes() == apart.master->bytes());
  }
}

TEST_CASE("a skipped step writes the weights to the master copy and nothing else") {
  for (auto const& types : all_types) {
    Arrays arrays(1500, 2, types);
    Arrays before(1500, 2, types);
    arrays.with_part(0, 1500, copy_pass);
    CHECK(arrays.weights.bytes() == before.weights.bytes());
    CHECK(arrays.states[0].bytes() == before.states[0].bytes());
    if (types.master) {
      CHECK(arrays.master->bytes() == Owned(before.weights.values(), *types.master).bytes());
    }
    CHECK(arrays.guards_hold());
  }
}

TEST_CASE("elements that are not finite or almost too large spoil no other element") {
  constexpr std::size_t size = 100;
  for (auto const type : {DType::bf16, DType::f32}) {
    for (auto const level : simd_levels()) {
      SimdLevelOverride const use(level);
      Types const types{DType::bf16, type, DType::bf16, DType::bf16};
      Arrays arrays(size, 2, types);
      Arrays tiled(size, 2, types);
      Arrays clean(size, 2, types);
      auto spoilt = arrays.gradient.values();
      spoilt[40] = std::numeric_limits<float>::quiet_NaN();
      spoilt[60] = std::numeric_limits<float>::infinity();
      spoilt[71] = std::bit_cast<float>(0x7fffffffU);  // CUDA's NaN
      spoilt[72] = std::bit_cast<float>(0xffffffffU);
      spoilt[80] = 0x1p127F;
      for (auto* const a : {&arrays, &tiled}) {
        narrow(spoilt, type, a->gradient.array().bytes());
        auto means = a->states[0].values();
        means[80] = 0x1.fep127F;  // the largest bf16 number
        narrow(means, DType::bf16, a->states[0].array().bytes());
      }
      AdamW const adamw({.beta1 = 0.998});
      update(adamw, arrays, size, size);
      update(WithoutRule<AdamW>{adamw}, tiled, size, size);
      update(adamw, clean, size, size);
      CHECK(arrays.same_bits(tiled));
      auto const is = arrays.master->values();
      auto const should = clean.master->values();
      CHECK(std::isnan(is[40]));
      CHECK(std::isnan(is[60]));  // infinity over infinity
      CHECK(std::isinf(arrays.states[0].values()[60]));
      CHECK(std::isnan(is[71]));
      CHECK(std::isnan(is[72]));
      CHECK(std::isinf(arrays.states[1].values()[80]));  // the square
      for (std::size_t i = 0; i < size; ++i) {
        bool const touched = i == 40 || i == 60 || i == 71 || i == 72 || i == 80;
        CHECK((touched || is[i] == should[i]));
      }
    }
  }
}

TEST_CASE("an update checks its arrays") {
  Arrays arrays(10, 2, {DType::f32, DType::bf16, DType::f32, DType::bf16});
  auto const refused = [&](auto const& change) {
    bool result = false;
    arrays.with_part(0, 10, [&](UpdateArrays a) {
      std::array states{a.states[0], a.states[1]};
      a.states = states;
      change(a, states);
      result = error_of([&] { update_pass(AdamW{}, {.step = 1}, a, rounding); }).code() ==
               Errc::invalid_argument;
    });
    return result;
  };
  using States = std::array<HostArray, 2>;
  CHECK(refused([](UpdateArrays& a, States&) { a.states = a.states.first(1); }));
  CHECK(refused([](UpdateArrays& a, States&) { a.gradient.size = 9; }));
  CHECK(refused([](UpdateArrays& a, States&) { a.gradient.dtype = DType::i32; }));
  CHECK(refused([](UpdateArrays&, States& s) { s[1].size = 9; }));
  CHECK(refused([](UpdateArrays&, States& s) { s[1].dtype = DType::f16; }));
  CHECK(refused([](UpdateArrays& a, States&) { a.master.size = 9; }));
  CHECK(refused([](UpdateArrays& a, States&) { a.master.dtype = DType::u8; }));
  CHECK(refused([](UpdateArrays& a, States&) { a.weights.dtype = DType::f16; }));
  CHECK(refused([](UpdateArrays& a, States&) {
    a.weights.dtype = DType::bf16;
    a.master = {};
  }));
  CHECK(refused([](UpdateArrays& a, States&) {
    a.weights.dtype = DType::bf16;
    a.master.dtype = DType::f16;
  }));
  std::array<HostArray, 9> const nine{};
  CHECK(error_of([&] {
          update_pass(NineStates{}, {}, UpdateArrays{{}, {}, nine, {}}, rounding);
        }).code() == Errc::invalid_argument);
}

TEST_CASE("parts of arrays must lie inside the arrays") {
  Owned owned({1, 2, 3}, DType::bf16);
  auto const part = owned.array().part(1, 3);
  CHECK(part.size == 2);
  CHECK(part.data == owned.array().data + 2);
  CHECK(part.present());
  CHECK_THROWS_AS((void)owned.array().part(2, 4), Error);
  CHECK_THROWS_AS((void)owned.array().part(2, 1), Error);
  CHECK_FALSE(HostArray{}.part(5, 9).present());
}

}  // namespace update_pass_test
