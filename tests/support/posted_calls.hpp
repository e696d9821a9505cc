// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs the calls of a training one by one, or posts each before the loss of the one before.

#include <utility>
#include <vector>

namespace roundpipe::test {

/// The calls of \p trainer and their losses.
template <class Trainer>
class PostedCalls {
 public:
  /// \p ahead: posts each call before it takes the loss of the one before, if the trainer can.
  PostedCalls(Trainer& trainer, bool ahead) : trainer_(trainer), ahead_(ahead) {}

  /// \p batch: a \ref Batch, or what else the trainer's calls take.
  template <class B>
  void run(B const& batch) {
    if constexpr (posts) {
      trainer_.post_call(batch);
      if (!ahead_ || std::exchange(waits_, true)) {
        losses_.push_back(trainer_.take_loss());
      }
    } else {
      losses_.push_back(trainer_.forward_backward(batch));
    }
  }

  /// All losses, that of the last call, too.
  [[nodiscard]] std::vector<double> const& losses() {
    if constexpr (posts) {
      if (std::exchange(waits_, false)) {
        losses_.push_back(trainer_.take_loss());
      }
    }
    return losses_;
  }

 private:
  static constexpr bool posts = requires(Trainer& trainer) { trainer.take_loss(); };

  Trainer& trainer_;
  bool ahead_;
  bool waits_ = false;  // the last call's loss
  std::vector<double> losses_;
};

}  // namespace roundpipe::test
