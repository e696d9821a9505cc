// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/memory/stage_region.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace roundpipe {

namespace detail {

class RegionLayout {
 public:
  RegionLayout(std::span<RegionNeeds const> stages,
               std::span<DeviceTurns const> parts,
               std::size_t parameters,
               std::size_t gradients)
      : stages_(stages),
        parts_(parts),
        ends_(parameters),
        entries_(gradients),
        beside_(stages.size(), 0),
        next_parameters_(parameters + 2, 0),
        next_turns_(gradients + 1) {}

  [[nodiscard]] StageRegion run() && {
    StageRegion region;
    region.stages.resize(stages_.size());
    place_scratch();
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      region.stages[k].scratch = beside_[k];
      region.bytes = std::max(region.bytes, ends_ * beside_[k] + stages_[k].scratch);
    }
    place_gradients(region);
    return region;
  }

 private:
  /// The most of some turns: below gradients, and above them.
  struct Beside {
    Bytes bottom = 0;
    Bytes top = 0;

    void include(Beside const& other) {
      bottom = std::max(bottom, other.bottom);
      top = std::max(top, other.top);
    }
    friend bool operator==(Beside const&, Beside const&) = default;
  };

  [[nodiscard]] Bytes parameters_of(DeviceTurn const& turn) const {
    Bytes most = 0;
    for (auto const k : turn) {
      most = std::max(most, stages_[k].parameters);
    }
    return most;
  }
  [[nodiscard]] bool makes_gradients(DeviceTurn const& turn) const {
    return std::any_of(
        turn.begin(), turn.end(), [&](std::size_t k) { return stages_[k].gradients > 0; });
  }

  /// Calls `f()`, which returns whether it has changed anything, until it has not.
  template <class F>
  static void repeat(F const& f) {
    while (f()) {
    }
  }

  /// The most of the first \p count parameters from \p turns on, and of what follows their part.
  [[nodiscard]] Bytes most_parameters(std::span<DeviceTurn const> turns, std::size_t count) const {
    Bytes most = 0;
    for (auto turn = turns.begin(); turn != turns.end() && count > 0; ++turn) {
      auto const bytes = parameters_of(*turn);
      most = std::max(most, bytes);
      count -= bytes > 0 ? 1 : 0;
    }
    return std::max(most, next_parameters_[count]);
  }

  void place_scratch() {
    repeat([&] {
      bool grows = false;
      for (auto const& part : parts_) {
        for (std::size_t n = 1; n < next_parameters_.size(); ++n) {
          auto const most = most_parameters(part, n);
          grows = grows || most > next_parameters_[n];
          next_parameters_[n] = std::max(next_parameters_[n], most);
        }
      }
      return grows;
    });
    for (auto const& part : parts_) {
      for (std::size_t i = 0; i < part.size(); ++i) {
        auto const ends_early = std::any_of(part[i].begin(), part[i].end(), [&](std::size_t k) {
          return !stages_[k].reads_to_the_end;
        });
        auto const most = most_parameters(std::span(part).subspan(i), ends_ + (ends_early ? 1 : 0));
        for (auto const k : part[i]) {
          beside_[k] = std::max(beside_[k], most);
        }
      }
    }
  }

  /// What lies beside gradients that live while \p turn runs.
  [[nodiscard]] Beside beside(DeviceTurn const& turn) const {
    Beside result;
    for (auto const k : turn) {
      result.include({beside_[k] + stages_[k].scratch, ends_ > 1 ? beside_[k] : 0});
    }
    return result;
  }

  /// The most beside gradients from \p turns on until \p count turns have made others.
  [[nodiscard]] Beside most_beside(std::span<DeviceTurn const> turns, std::size_t count) const {
    Beside most;
    for (auto turn = turns.begin(); turn != turns.end() && count > 0; ++turn) {
      most.include(beside(*turn));
      count -= makes_gradients(*turn) ? 1 : 0;
    }
    if (count > 0) {
      most.include(next_turns_[count]);
    }
    return most;
  }

  void place_gradients(StageRegion& region) {
    repeat([&] {
      bool grows = false;
      for (auto const& part : parts_) {
        for (std::size_t n = 1; n < next_turns_.size(); ++n) {
          auto const before = next_turns_[n];
          next_turns_[n].include(most_beside(part, n));
          grows = grows || before != next_turns_[n];
        }
      }
      return grows;
    });
    for_each_gradients([&](std::span<DeviceTurn const> turns, std::size_t k) {
      auto const most = most_beside(turns, entries_ + 1);  // its own turn counts
      auto& places = region.stages[k];
      places.gradients_bottom = std::max(places.gradients_bottom, most.bottom);
      places.gradients_top = std::max(places.gradients_top, most.top);
    });
    auto const ends_of = [&](std::size_t k) {
      auto const& places = region.stages[k];
      auto const bytes = stages_[k].gradients;
      return Beside{places.gradients_bottom + bytes, bytes + places.gradients_top};
    };
    Beside first;  // the first gradients of any part
    for (auto const& part : parts_) {
      first.include(next_gradients(part, ends_of));
    }
    for_each_gradients([&](std::span<DeviceTurn const> turns, std::size_t k) {
      auto const mine = ends_of(k);
      auto const top = region.stages[k].gradients_top;
      region.bytes = std::max(region.bytes, mine.bottom + top);
      if (entries_ > 1) {
        auto const next = next_gradients(turns.subspan(1), ends_of);
        auto const other = next == Beside{} ? first : next;
        region.bytes = std::max({region.bytes, mine.bottom + other.top, other.bottom + mine.top});
      }
    });
  }

  /// Calls `f(turns, k)` for each stage \c k that makes gradients, in the first of \c turns.
  template <class F>
  void for_each_gradients(F&& f) const {
    for (auto const& part : parts_) {
      for (std::size_t i = 0; i < part.size(); ++i) {
        for (auto const k : part[i]) {
          if (stages_[k].gradients > 0) {
            f(std::span(part).subspan(i), k);
          }
        }
      }
    }
  }

  /// Where the next gradients of \p turns end; nothing where there are none.
  template <class F>
  [[nodiscard]] Beside next_gradients(std::span<DeviceTurn const> turns, F const& ends_of) const {
    Beside result;
    for (auto const& turn : turns) {
      if (makes_gradients(turn)) {
        for (auto const k : turn) {
          if (stages_[k].gradients > 0) {
            result.include(ends_of(k));
          }
        }
        break;
      }
    }
    return result;
  }

  std::span<RegionNeeds const> stages_;
  std::span<DeviceTurns const> parts_;
  std::size_t ends_;           // entries of parameters
  std::size_t entries_;        // of gradients
  std::vector<Bytes> beside_;  // by stage: the most parameters at one end while it runs
  // What follows a part, whichever it is: the most of its first n parameters, and what lies beside
  // gradients until n others are made.
  std::vector<Bytes> next_parameters_;
  std::vector<Beside> next_turns_;
};

}  // namespace detail

ROUNDPIPE_INLINE StageRegion lay_out_region(std::span<RegionNeeds const> stages,
                                            std::span<DeviceTurns const> parts,
                                            std::size_t parameters,
                                            std::size_t gradients) {
  auto const is_known = [](std::size_t entries) { return entries == 1 || entries == 2; };
  require(is_known(parameters) && is_known(gradients),
          Errc::invalid_argument,
          "rings of parameters and of gradients have one entry or two");
  std::vector<DeviceTurns> each;
  if (parts.empty()) {
    for (std::size_t k = 0; k < stages.size(); ++k) {
      each.push_back({{k}});
    }
    parts = each;
  }
  return detail::RegionLayout(stages, parts, parameters, gradients).run();
}

}  // namespace roundpipe
