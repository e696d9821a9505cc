// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A model whose layers are chosen at run time.

#include <roundpipe/core/id.hpp>

#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

namespace roundpipe::test {

/// Has what a model must have, and no more.
template <class... Layers>
struct MadeModel {
  std::vector<std::variant<Layers...>> layers;

  std::size_t layer_count() const { return layers.size(); }
  template <class F>
  decltype(auto) visit(LayerId id, F&& f) const {
    return std::visit(std::forward<F>(f), layers[id.index()]);
  }
};

}  // namespace roundpipe::test
