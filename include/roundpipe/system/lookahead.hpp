// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Results in order, some of them found ahead on free threads.

#include <roundpipe/system/bounded_async.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <future>
#include <type_traits>
#include <utility>

namespace roundpipe {

/// \brief What a function returns for 0, 1, 2 and so on, as far as anybody asks.
///
/// Meanwhile free threads find the next results, and so does the thread that waits for one. Results
/// that nobody comes to ask for are lost. Where no thread is free, nothing is found ahead.
template <class F>
class Lookahead {
 public:
  using Result = std::invoke_result_t<F const&, std::size_t>;

  /// \p f may run for several numbers at the same time. \p aside, which must outlive this, runs it
  /// ahead; null: nothing does.
  Lookahead(BoundedAsync* aside, std::size_t count, F f)
      : aside_(aside), count_(count), f_(std::move(f)) {}
  Lookahead(Lookahead const&) = delete;  // functions that run know this
  Lookahead& operator=(Lookahead const&) = delete;
  /// Waits for functions that run.
  ~Lookahead() = default;

  /// What the function returns or throws for the next number, which must be below the count.
  [[nodiscard]] Result next() {
    if (ahead_.empty()) {
      auto const number = begun_++;
      begin_more();
      return f_(number);
    }
    begin_more();
    while (begun_ < count_ && !is_ready(ahead_.front())) {
      std::packaged_task<Result()> here([this, number = begun_++] { return f_(number); });
      ahead_.push_back(here.get_future());
      here();
      begin_more();
    }
    auto result = std::move(ahead_.front());
    ahead_.pop_front();
    return result.get();
  }

 private:
  [[nodiscard]] static bool is_ready(std::future<Result> const& result) {
    return result.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  void begin_more() {
    while (aside_ != nullptr && begun_ < count_) {
      auto result = aside_->if_free([this, number = begun_] { return f_(number); });
      if (!result) {
        return;
      }
      ahead_.push_back(*std::move(result));
      ++begun_;
    }
  }

  BoundedAsync* aside_;
  std::size_t count_;
  F f_;
  std::size_t begun_ = 0;
  std::deque<std::future<Result>> ahead_;  // the last member: its functions use the others
};

}  // namespace roundpipe
