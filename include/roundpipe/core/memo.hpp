// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Values that are made once.

#include <map>
#include <mutex>

namespace roundpipe {

/// \brief Values by key, each made when it is first asked for.
///
/// Threads may ask at the same time: one makes a value while the others wait.
template <class Key, class Value>
class Memo {
 public:
  /// The value of \p key, or else what `make()` returns, from then on. It lives as long as this.
  /// \throws as \p make does; then the next call makes the value.
  template <class F>
  [[nodiscard]] Value const& operator()(Key const& key, F const& make) {
    std::scoped_lock const lock(mutex_);
    auto found = values_.find(key);
    if (found == values_.end()) {
      found = values_.emplace(key, make()).first;
    }
    return found->second;
  }

 private:
  std::mutex mutex_;
  std::map<Key, Value> values_;
};

}  // namespace roundpipe
