// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Functions on threads of their own, of which only so many run at once.

#include <algorithm>
#include <cstddef>
#include <future>
#include <semaphore>
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
      struct Release {
        std::counting_semaphore<>& free;
        ~Release() { free.release(); }
      } const release{free_};
      return f();
    });
  }

 private:
  bool runs_aside_;
  std::counting_semaphore<> free_;  // threads
};

}  // namespace roundpipe
