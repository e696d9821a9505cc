// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Functions on threads of their own, of which only so many run at once.

#include <algorithm>
#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <semaphore>
#include <type_traits>
#include <utility>

namespace roundpipe {

/// \brief `std::async` with a limit: at most so many functions run at once, and others wait.
///
/// With one thread nothing runs aside: a function runs when its result is asked for, if it is. The
/// object must outlive what it runs. Threads may call it at the same time.
class BoundedAsync {
 public:
  /// 0 \p threads count as one.
  explicit BoundedAsync(std::size_t threads)
      : runs_aside_(threads > 1),
        free_(static_cast<std::ptrdiff_t>(std::max<std::size_t>(threads, 1))) {}

  /// Whether functions run before their results are asked for.
  [[nodiscard]] bool runs_aside() const noexcept { return runs_aside_; }

  /// What \p f returns or throws. Where functions run aside, the destructor of the future waits.
  template <class F>
  [[nodiscard]] auto operator()(F f) {
    auto const policy = runs_aside_ ? std::launch::async : std::launch::deferred;
    return std::async(policy, [this, f = std::move(f)]() mutable {
      free_.acquire();
      Taken const taken(&free_);
      return f();
    });
  }

  /// The same if a thread is free to run \p f now. Functions that run may call it: it never waits.
  template <class F>
  [[nodiscard]] std::optional<std::future<std::invoke_result_t<F&>>> if_free(F f) {
    if (!runs_aside_ || !free_.try_acquire()) {
      return std::nullopt;
    }
    Taken taken(&free_);
    auto result = std::async(std::launch::async, [this, f = std::move(f)]() mutable {
      Taken const by_function(&free_);
      return f();
    });
    (void)taken.release();
    return result;
  }

 private:
  struct GiveBack {
    void operator()(std::counting_semaphore<>* free) const { free->release(); }
  };
  using Taken = std::unique_ptr<std::counting_semaphore<>, GiveBack>;  ///< A thread.

  bool runs_aside_;
  std::counting_semaphore<> free_;  // threads
};

}  // namespace roundpipe
