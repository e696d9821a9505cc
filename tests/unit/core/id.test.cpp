// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/core/id.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace id_test {

namespace {

using roundpipe::DeviceId;
using roundpipe::LayerId;
using roundpipe::StageId;

// Ids of different kinds, and numbers, do not convert to each other.
static_assert(!std::is_convertible_v<int, LayerId>);
static_assert(!std::is_convertible_v<LayerId, int>);
static_assert(!std::is_constructible_v<LayerId, StageId>);
static_assert(!std::is_constructible_v<LayerId, double>);
static_assert(!std::is_assignable_v<LayerId&, int>);
template <class A, class B>
concept Comparable = requires(A a, B b) { a == b; };
static_assert(Comparable<LayerId, LayerId>);
static_assert(!Comparable<LayerId, StageId>);
static_assert(!Comparable<LayerId, int>);

static_assert(std::is_trivially_copyable_v<LayerId> && sizeof(LayerId) == 4);
static_assert(LayerId(3).index() == 3 && LayerId(3).value() == 3);

}  // namespace

TEST_CASE("a default id is none") {
  CHECK(LayerId{} == LayerId::none());
  CHECK_FALSE(LayerId{}.valid());
  CHECK_FALSE(DeviceId(-1).valid());
  CHECK(LayerId(0).valid());
  CHECK(LayerId(0) != LayerId::none());
}

TEST_CASE("ids can be made from any integer type") {
  CHECK(LayerId(std::size_t{7}) == LayerId(7));
  CHECK(LayerId(std::int8_t{7}) == LayerId(7U));
}

TEST_CASE("ids are ordered by number, and none comes first") {
  std::vector<StageId> ids{StageId(2), StageId(0), StageId::none(), StageId(1)};
  std::ranges::sort(ids);
  CHECK(ids == std::vector<StageId>{StageId::none(), StageId(0), StageId(1), StageId(2)});
  CHECK(StageId(1) < StageId(2));
  CHECK(StageId(2) >= StageId(2));
}

TEST_CASE("ids can be keys of ordered and unordered containers") {
  std::set<LayerId> const ordered{LayerId(1), LayerId(2), LayerId(1)};
  std::unordered_set<LayerId> const unordered{LayerId(1), LayerId(2), LayerId(1)};
  CHECK(ordered.size() == 2);
  CHECK(unordered.size() == 2);
  CHECK(unordered.contains(LayerId(2)));
  CHECK_FALSE(unordered.contains(LayerId::none()));
}

}  // namespace id_test
