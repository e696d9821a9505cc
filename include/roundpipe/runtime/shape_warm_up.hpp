// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Lets devices see each shape of micro-batches before they train with it, once.

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/core/batch_shape.hpp>
#include <roundpipe/model/batch.hpp>
#include <roundpipe/runtime/actions/device_actions.hpp>
#include <roundpipe/runtime/batch_feed.hpp>
#include <roundpipe/runtime/execute/executor.hpp>
#include <roundpipe/runtime/probe/warm_up.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace roundpipe {

/// Runs the layers of \p M at new shapes, where \p B wants that.
template <class M, Backend B>
class ShapeWarmUp {
 public:
  /// All references must outlive this; \p executor may be made after it. Devices have seen the
  /// capacity of \p feed.
  ShapeWarmUp(M const& model,
              B& backend,
              BatchFeed<M>& feed,
              DeviceActions<M, B> const& actions,
              Executor<B>& executor,
              std::size_t devices)
      : model_(model),
        backend_(backend),
        feed_(feed),
        actions_(actions),
        executor_(executor),
        devices_(devices),
        met_{feed.capacity().model.capacity} {}

  /// Lets devices see the shapes of \p batch that are new to them, while nothing else is under way.
  void meet(Batch const& batch) {
    if constexpr (HasWarmUp<B>) {
      for (std::size_t m = 0; m < batch.size(); ++m) {
        if (auto const shape = batch.shape(m); std::count(met_.begin(), met_.end(), shape) == 0) {
          executor_.synchronize();
          warm_up(model_, backend_, feed_.at(shape).model, devices_, actions_.arenas());
          met_.push_back(shape);
        }
      }
    }
  }

 private:
  M const& model_;
  B& backend_;
  BatchFeed<M>& feed_;
  DeviceActions<M, B> const& actions_;
  Executor<B>& executor_;
  std::size_t devices_;
  std::vector<BatchShape> met_;  // shapes that devices have seen
};

}  // namespace roundpipe
