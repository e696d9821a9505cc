// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/testing/layer_layout.hpp>
#include <roundpipe/testing/layer_values.hpp>
#include <roundpipe/testing/watched_passes.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::testing::detail {

ROUNDPIPE_INLINE void WatchedPasses::report(std::string finding) {
  if (std::find(findings_.begin(), findings_.end(), finding) == findings_.end()) {
    findings_.push_back(std::move(finding));
  }
}

ROUNDPIPE_INLINE Outcome WatchedPasses::run(Outcome const& from, LayerPass const& pass) {
  auto const throws = [&](std::string const& message) {
    report(std::string(pass.name()) + " throws: " + message);
    return PassesEnd{};
  };
  Outcome result{from.layout, {}};
  try {
    result.image = run_(*from.layout, from.image, pass);
  } catch (...) {
    throw throws(current_error("").message());
  }
  check_untouched(from, result, pass);
  return result;
}

ROUNDPIPE_INLINE void WatchedPasses::check_untouched(Outcome const& before,
                                                     Outcome const& after,
                                                     LayerPass const& pass) {
  auto const& layout = *before.layout;
  Bytes end = 0;  // of the buffers so far
  auto const check_guard = [&](Bytes next) {
    auto const first = before.image.begin() + static_cast<std::ptrdiff_t>(end);
    auto const last = before.image.begin() + static_cast<std::ptrdiff_t>(next);
    auto const at =
        std::mismatch(first, last, after.image.begin() + static_cast<std::ptrdiff_t>(end)).first;
    if (at != last) {
      report(std::string(pass.name()) + " writes outside its buffers, " +
             layout.text_of(static_cast<Bytes>(at - before.image.begin())));
    }
  };
  for (auto const& buffer : layout.buffers()) {
    check_guard(std::min(buffer.offset, before.image.size()));
    end = buffer.offset + buffer.bytes();
    if (buffer.present && pass.writes(buffer.role)) {
      continue;
    }
    if (auto const i = first_difference(buffer, before.image, buffer, after.image)) {
      report(std::string(pass.name()) + " writes to " + place(buffer, *i) +
             (buffer.present ? ", which it may only read"
                             : ", which is absent: the parameter is frozen, or has no gradient"));
    }
  }
  if (end < before.image.size()) {
    check_guard(before.image.size());
  }
}

ROUNDPIPE_INLINE void WatchedPasses::compare(std::initializer_list<Role> roles,
                                             Outcome const& a,
                                             Outcome const& b,
                                             Text const& text) {
  for (std::size_t n = 0; n < a.layout->buffers().size(); ++n) {
    auto const& in_a = a.layout->buffers()[n];
    auto const& in_b = b.layout->buffers()[n];
    if (!in_a.present || std::find(roles.begin(), roles.end(), in_a.role) == roles.end()) {
      continue;
    }
    if (auto const i = first_difference(in_a, a.image, in_b, b.image)) {
      report(text(in_a, *i));
    }
  }
}

ROUNDPIPE_INLINE void WatchedPasses::expect_same(std::initializer_list<Role> roles,
                                                 std::string const& context,
                                                 Outcome const& got,
                                                 Outcome const& want,
                                                 char const* reason) {
  compare(roles, got, want, [&](Buffer const& buffer, std::size_t i) {
    auto const n = static_cast<std::size_t>(&buffer - got.layout->buffers().data());
    return context + ": " + place(buffer, i) + " is " + number(got.image, buffer, i) + ", want " +
           number(want.image, want.layout->buffers()[n], i) + " " + reason;
  });
}

ROUNDPIPE_INLINE void WatchedPasses::expect_written(std::initializer_list<Role> roles,
                                                    LayerPass const& pass,
                                                    Outcome const& a,
                                                    Outcome const& b) {
  compare(roles, a, b, [&](Buffer const& buffer, std::size_t i) {
    auto const unwritten =
        holds_only(a.image, buffer, i, garbage[0]) && holds_only(b.image, buffer, i, garbage[1]);
    return std::string(pass.name()) +
           (unwritten ? " does not write " + place(buffer, i)
                      : ": " + place(buffer, i) + " depends on memory that no pass has written");
  });
}

ROUNDPIPE_INLINE void WatchedPasses::expect_in_place(Outcome const& from,
                                                     LayerPass pass,
                                                     Outcome const& want) {
  pass.in_place = true;
  auto got = run(from, pass);
  got.layout->copy_carried(got.image, pass);
  expect_same({Role::output, Role::input_gradient, Role::parameter_gradient},
              std::string(pass.name()) + " with carried tensors in place",
              got,
              want,
              "as by copies");
}

}  // namespace roundpipe::testing::detail
