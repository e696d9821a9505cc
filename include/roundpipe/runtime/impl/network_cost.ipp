// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/hosts/exchange_seconds.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/runtime/network_cost.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE NetworkCost fit_network(MeasuredExchange small, MeasuredExchange large) {
  if (large.seconds <= small.seconds) {
    return {.latency_s = small.seconds};
  }
  auto const rate =
      static_cast<double>(large.received - small.received) / (large.seconds - small.seconds);
  return {rate, std::max(small.seconds - static_cast<double>(small.received) / rate, 0.0)};
}

ROUNDPIPE_INLINE NetworkCost measure_network(AnyProcessGroup group, HostBytes memory) {
  auto const ranks = group.size();
  if (ranks == 1) {
    return {};
  }
  Bytes const room = memory.size();
  std::vector<Bytes> rooms(ranks);
  group.gather(GroupChannel::control,
               std::as_bytes(std::span(&room, 1)),
               std::as_writable_bytes(std::span(rooms)));
  auto const most = *std::ranges::min_element(rooms) / ranks;  // of a message
  require(
      most > 0, Errc::invalid_argument, "measuring a network takes a byte of memory for each rank");
  auto const exchange = [&](std::size_t message, std::size_t tries) {
    auto const received = (ranks - 1) * message;
    return MeasuredExchange{received,
                            exchange_seconds(group,
                                             GroupChannel::control,
                                             memory.first(message),
                                             memory.subspan(most, received),
                                             tries)};
  };
  auto const small = exchange(1, 5);
  auto large = small;
  constexpr double enough_s = 0.02;
  constexpr std::size_t growth = 8;
  for (auto message = 64_KiB / ranks; message > 1 && large.seconds < small.seconds + enough_s;
       message *= growth) {
    large = exchange(std::min<std::size_t>(message, most), 2);
    if (message >= most) {
      break;
    }
  }
  return fit_network(small, large);
}

}  // namespace roundpipe
