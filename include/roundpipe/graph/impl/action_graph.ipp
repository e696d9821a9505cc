// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/id.hpp>
#include <roundpipe/core/lane.hpp>
#include <roundpipe/graph/action_graph.hpp>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::string to_string(Action const& action, std::string const& name) {
  std::string text = name_of(action.kind);
  auto const add = [&](char const* what, auto id) {
    if (id.valid()) {
      text += what + std::to_string(id.value());
    }
  };
  add(" of layer ", action.layer);
  add(" of block ", action.block);
  if (!name.empty()) {
    text += action.layer.valid() ? " (" + name + ")" : ", " + name;
  }
  add(", stage ", action.stage);
  add(", round ", action.round);
  add(", micro-batch ", action.micro_batch);
  return text;
}

ROUNDPIPE_INLINE Buffer const* find_buffer(Action const& action, BufferKind kind) noexcept {
  for (auto const* list : {&action.writes, &action.reads}) {
    for (auto const& buffer : *list) {
      if (buffer.ring.kind == kind) {
        return &buffer;
      }
    }
  }
  return nullptr;
}

ROUNDPIPE_INLINE std::vector<ActionId> latest_of_lanes(std::span<Action const> actions,
                                                       std::vector<ActionId> ids) {
  std::sort(ids.begin(), ids.end(), std::greater<>());
  std::vector<ActionId> latest;
  for (auto const id : ids) {
    auto const is_later = [&](ActionId kept) {
      return actions[kept.index()].lane == actions[id.index()].lane;
    };
    if (std::none_of(latest.begin(), latest.end(), is_later)) {
      latest.push_back(id);
    }
  }
  std::reverse(latest.begin(), latest.end());
  return latest;
}

}  // namespace roundpipe
