// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/simulate/link_sharing.hpp>

#include <support/error_of.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <vector>

namespace link_sharing_test {

namespace {

using namespace roundpipe;
using enum CopyDirection;

std::vector<double> rates_of(LinkModel const& link, std::vector<CopyFlow> const& flows) {
  return LinkSharing(link, 4).rates(flows);
}

}  // namespace

TEST_CASE("without limits copies take no time") {
  CHECK(rates_of({}, {{0, up}, {1, down}}) ==
        std::vector<double>{LinkSharing::unlimited, LinkSharing::unlimited});
}

TEST_CASE("a single copy has the full rate of its link and direction") {
  LinkModel const link{10, 20};
  CHECK(rates_of(link, {{0, up}}) == std::vector<double>{10});
  CHECK(rates_of(link, {{3, down}}) == std::vector<double>{20});
}

TEST_CASE(
    "with copies both ways a link gives each a share, and other devices' links do not change") {
  LinkModel link{10, 20};
  link.upload_share_both_ways = link.download_share_both_ways = 0.5;
  CHECK(rates_of(link, {{0, up}, {0, down}, {1, up}}) == std::vector<double>{5, 10, 10});
}

TEST_CASE("each direction has a share of its own of a link that is used both ways") {
  LinkModel link{10, 20};
  link.upload_share_both_ways = 0.75;
  link.download_share_both_ways = 0.5;
  CHECK(rates_of(link, {{0, up}, {0, down}}) == std::vector<double>{7.5, 10});
}

TEST_CASE("a copy slows the other direction of its link also where its own has no limit") {
  LinkModel link{10, 0};
  link.upload_share_both_ways = link.download_share_both_ways = 0.5;
  CHECK(rates_of(link, {{0, up}, {0, down}, {1, up}}) ==
        std::vector<double>{5, LinkSharing::unlimited, 10});
}

TEST_CASE("copies to other devices share nothing with copies to and from the host") {
  LinkModel link{10, 20, 30};
  link.upload_share_both_ways = link.download_share_both_ways = 0.5;
  link.groups = {{0, 1}};
  link.root_upload_bytes_per_second = link.host_bytes_per_second = 12;
  link.host_download_weight = 2;
  constexpr auto peer = CopyDirection::peer;
  CHECK(rates_of(link, {{0, peer}, {3, peer}}) == std::vector<double>{30, 30});
  CHECK(rates_of(link, {{0, up}, {0, peer}, {1, up}}) == std::vector<double>{5, 30, 5});
  link.peer_bytes_per_second = 0;
  CHECK(rates_of(link, {{0, peer}, {0, up}}) == std::vector<double>{LinkSharing::unlimited, 10});
}

TEST_CASE("the link of one device may be slower than the others") {
  LinkModel link{10, 20};
  link.device_factors = {1, 1, 0.5, 1};
  CHECK(rates_of(link, {{0, up}, {2, up}, {2, down}}) == std::vector<double>{10, 5, 10});
}

TEST_CASE("the factors of a slow link, of copies both ways and of a switch combine") {
  LinkModel link{10, 20};
  link.device_factors = {1, 0.5, 1, 1};
  link.upload_share_both_ways = link.download_share_both_ways = 0.5;
  link.groups = {{0, 1}};
  CHECK(rates_of(link, {{1, up}, {1, down}, {0, up}}) == std::vector<double>{2.5, 5, 7.5});
}

TEST_CASE("devices behind one switch share a link in each direction") {
  LinkModel link{10, 10};
  link.groups = {{0, 1}, {2, 3}};
  CHECK(rates_of(link, {{0, up}, {1, up}, {2, up}, {1, down}}) ==
        std::vector<double>{5, 5, 10, 10});
}

TEST_CASE("other copies get the share that one copy cannot use, also at the root") {
  LinkModel link{10, 10};
  link.groups = {{0, 1}};
  link.root_upload_bytes_per_second = 18;
  CHECK(rates_of(link, {{0, up}, {1, up}, {2, up}}) == std::vector<double>{5, 5, 8});
}

TEST_CASE("both directions share host memory; each direction has its own root limit") {
  LinkModel link{10, 10};
  link.root_upload_bytes_per_second = 12;
  CHECK(rates_of(link, {{0, up}, {1, up}, {2, down}}) == std::vector<double>{6, 6, 10});
  CHECK(rates_of(link, {{0, down}, {1, down}, {2, up}}) == std::vector<double>{10, 10, 10});
  link.root_download_bytes_per_second = 8;
  CHECK(rates_of(link, {{0, down}, {1, down}, {2, up}}) == std::vector<double>{4, 4, 10});
  link.host_bytes_per_second = 15;
  CHECK(rates_of(link, {{0, up}, {1, up}, {2, down}}) == std::vector<double>{5, 5, 5});
}

TEST_CASE("where host memory is the limit, a download gets its weight, and uploads the rest") {
  LinkModel link{10, 10};
  link.host_bytes_per_second = 24;
  link.host_download_weight = 2;
  CHECK(rates_of(link, {{0, up}, {0, down}, {1, up}, {1, down}}) ==
        std::vector<double>{4, 8, 4, 8});
  link.host_bytes_per_second = 33;  // more than downloads can use
  CHECK(rates_of(link, {{0, up}, {0, down}, {1, up}, {1, down}}) ==
        std::vector<double>{6.5, 10, 6.5, 10});
  CHECK(rates_of(link, {{0, up}, {1, down}}) == std::vector<double>{10, 10});
}

TEST_CASE("no limit is exceeded, and a fully used limit holds back every copy") {
  std::mt19937 random(1);
  auto const draw = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  for (int i = 0; i < 300; ++i) {
    LinkModel link{draw(1, 10), draw(1, 10)};
    link.groups = {{0, 2}};
    link.root_upload_bytes_per_second = draw(5, 40);
    link.root_download_bytes_per_second = draw(5, 40);
    link.host_bytes_per_second = draw(5, 60);
    link.host_download_weight = draw(0.5, 2);
    std::vector<CopyFlow> flows;
    for (std::size_t device = 0; device < 4; ++device) {
      for (auto const direction : {up, down}) {
        if (random() % 2 == 0) {
          flows.push_back({device, direction});
        }
      }
    }
    auto const rates = rates_of(link, flows);
    auto const sum = [&](auto const& counts) {
      double total = 0;
      for (std::size_t f = 0; f < flows.size(); ++f) {
        total += counts(flows[f]) ? rates[f] : 0;
      }
      return total;
    };
    auto const full = [](double used, double limit) {
      CHECK(used <= limit * (1 + 1e-9));
      return used >= limit * (1 - 1e-9);
    };
    for (std::size_t f = 0; f < flows.size(); ++f) {
      auto const& flow = flows[f];
      auto const rate =
          flow.direction == up ? link.upload_bytes_per_second : link.download_bytes_per_second;
      auto const same_way = [&](CopyFlow const& x) { return x.direction == flow.direction; };
      auto held = full(rates[f], rate);
      held = full(sum(same_way),
                  flow.direction == up ? link.root_upload_bytes_per_second
                                       : link.root_download_bytes_per_second) ||
             held;
      held = full(sum([](CopyFlow const&) { return true; }), link.host_bytes_per_second) || held;
      if (flow.device % 2 == 0 && flow.device < 3) {
        held =
            full(sum([&](CopyFlow const& x) { return same_way(x) && x.device % 2 == 0; }), rate) ||
            held;
      }
      CHECK(held);
    }
  }
}

TEST_CASE("invalid links are refused") {
  auto const code = [](LinkModel const& link) {
    return test::error_of([&] { LinkSharing(link, 2); }).code();
  };
  CHECK(code({-1, 0}) == Errc::invalid_argument);
  LinkModel link;
  link.upload_share_both_ways = 0;
  CHECK(code(link) == Errc::invalid_argument);
  link = {};
  link.host_download_weight = 0;
  CHECK(code(link) == Errc::invalid_argument);
  link = {};
  link.device_factors = {1};
  CHECK(code(link) == Errc::invalid_argument);
  link.device_factors = {1, 0};
  CHECK(code(link) == Errc::invalid_argument);
  link = {};
  link.groups = {{0, 2}};
  CHECK(code(link) == Errc::invalid_argument);
  link.groups = {{0}, {1, 0}};
  CHECK(code(link) == Errc::invalid_argument);
}

}  // namespace link_sharing_test
