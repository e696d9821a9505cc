// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Speeds of links that are measured once for all backends that share resources.

#include <roundpipe/core/id.hpp>
#include <roundpipe/cuda/device/link_speed.hpp>
#include <roundpipe/cuda/device/shared_speed.hpp>

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace roundpipe::cu {

/// Remembers what \ref measure_link, \ref measure_peer and \ref measure_shared_speed found. A
/// machine's links do not change while a process runs, and measuring takes over a second. Any
/// thread may call any member.
class KnownSpeeds {
 public:
  /// Of the link of \p device: what `measure(device)` says at the first call. \throws What that
  /// throws; the next call measures again then.
  template <class F>
  [[nodiscard]] LinkSpeed link(DeviceId device, F&& measure) {
    return known(links_, device, measure);
  }

  [[nodiscard]] LinkSpeed link(DeviceId device) {
    return link(device, [](DeviceId measured) { return measure_link(measured); });
  }

  /// Of \p devices together, named in this order: what `measure(devices)` says at the first call.
  /// \throws As \ref link.
  template <class F>
  [[nodiscard]] SharedSpeed shared(std::vector<DeviceId> const& devices, F&& measure) {
    return known(shared_, devices, measure);
  }
  [[nodiscard]] SharedSpeed shared(std::vector<DeviceId> const& devices) {
    return shared(devices, [](auto const& measured) { return measure_shared_speed(measured); });
  }

  /// Of copies from \p device to \p peer. \throws As \ref measure_peer.
  [[nodiscard]] double peer(DeviceId device, DeviceId peer) {
    auto measure = [](auto const& pair) { return measure_peer(pair.first, pair.second); };
    return known(peers_, std::pair(device, peer), measure);
  }

 private:
  template <class Key, class Speed, class F>
  [[nodiscard]] Speed known(std::map<Key, Speed>& speeds, Key const& key, F& measure) {
    std::lock_guard const lock(mutex_);  // two measurements at once would slow each other down
    if (auto const found = speeds.find(key); found != speeds.end()) {
      return found->second;
    }
    return speeds.emplace(key, measure(key)).first->second;
  }

  std::mutex mutex_;
  std::map<DeviceId, LinkSpeed> links_;
  std::map<std::pair<DeviceId, DeviceId>, double> peers_;
  std::map<std::vector<DeviceId>, SharedSpeed> shared_;
};

}  // namespace roundpipe::cu
