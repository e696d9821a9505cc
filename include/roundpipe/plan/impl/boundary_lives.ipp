// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/memory/resident_boundaries.hpp>
#include <roundpipe/memory/stage_layout.hpp>
#include <roundpipe/plan/boundary_lives.hpp>
#include <roundpipe/schedule/slot_order.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE BoundaryReader const& BoundaryLife::next() const {
  auto const found =
      std::find_if(readers.begin(), readers.end(), [&](BoundaryReader const& reader) {
        return reader.stage != stage;
      });
  return found == readers.end() ? readers.back() : *found;
}

ROUNDPIPE_INLINE std::vector<BoundaryReader> BoundaryLife::kept_for(bool of_all) const {
  if (readers.empty()) {
    return {};
  }
  auto const& next = this->next();
  if (!of_all) {
    return next.device == device ? std::vector<BoundaryReader>() : std::vector{next};
  }
  auto kept_for = readers;
  if (next.stage != stage) {
    std::erase_if(kept_for, [&](BoundaryReader const& reader) { return reader.stage == stage; });
  }
  return kept_for;
}

ROUNDPIPE_INLINE std::vector<BoundaryStay> BoundaryLife::stays(
    std::span<BoundaryReader const> kept_for) const {
  std::vector<BoundaryStay> stays;
  for (auto const& reader : kept_for) {
    auto const known = std::ranges::find(stays, reader.device, &BoundaryStay::device);
    if (known == stays.end()) {
      stays.push_back({reader.device, std::max(from, reader.until)});
    } else {
      known->until = std::max(known->until, reader.until);
    }
  }
  return stays;
}

ROUNDPIPE_INLINE std::vector<BoundaryLife> boundary_lives(std::span<StageLayout const> stages,
                                                          std::span<Slot const> slots,
                                                          std::size_t micro_batches) {
  std::vector<BoundaryLife> lives;
  std::map<std::pair<MadeBoundary, RoundId>, std::size_t> known;
  std::size_t now = 0;
  auto const run = [&](Slot const& slot, std::size_t m) {
    auto const& stage = stages[slot.stage.index()];
    for (auto const& pass : stage.passes(slot.round, m)) {
      ++now;
      for (auto const& access : boundary_accesses(stage, pass)) {
        MadeBoundary const made{access.kind, access.layer, m};
        if (access.writes) {
          known[{made, slot.round}] = lives.size();
          lives.push_back({made, slot.round, slot.stage, slot.device, now, {}, access.place.bytes});
          continue;
        }
        auto& readers = lives[known.at({made, slot.round})].readers;
        if (readers.empty() || readers.back().stage != slot.stage) {
          readers.push_back({slot.stage, slot.device, now});
        }
        readers.back().until = now;
      }
    }
  };
  for (std::size_t s = 0; s < slots.size();) {
    auto const turn = slots.subspan(s, slots[s].partner.valid() ? 2 : 1);
    for (std::size_t m = 0; m < micro_batches; ++m) {
      for (auto const& slot : turn) {
        run(slot, m);
      }
    }
    s += turn.size();
  }
  return lives;
}

ROUNDPIPE_INLINE Bytes handed_on(std::span<StageLayout const> stages, std::span<Slot const> slots) {
  Bytes sum = 0;
  for (auto const& life : boundary_lives(stages, slots, 1)) {
    auto const crosses = std::ranges::any_of(life.readers, [&](BoundaryReader const& reader) {
      return reader.stage.index() == life.stage.index() + 1 && reader.device != life.device;
    });
    sum += crosses ? life.bytes : 0;
  }
  return sum;
}

}  // namespace detail

}  // namespace roundpipe
