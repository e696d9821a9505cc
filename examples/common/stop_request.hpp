// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Ctrl-C and SIGTERM as a request to stop at the next good moment.

#include <csignal>
#include <initializer_list>

namespace examples {

/// While one of these exists, the first SIGINT or SIGTERM is a request that a program asks for, and
/// the second one ends the program at once, as it would without. There is at most one at a time.
class StopRequest {
 public:
  StopRequest() {
    requested_ = 0;
    set(note);
  }
  StopRequest(StopRequest const&) = delete;
  StopRequest& operator=(StopRequest const&) = delete;
  ~StopRequest() { set(SIG_DFL); }

  /// Whether the user wants the program to stop.
  [[nodiscard]] explicit operator bool() const noexcept { return requested_ != 0; }

 private:
  using Handler = void (*)(int);

  static void set(Handler handler) noexcept {
    for (int const signal : {SIGINT, SIGTERM}) {
      std::signal(signal, handler);
    }
  }
  static void note(int /*signal*/) {
    requested_ = 1;
    set(SIG_DFL);
  }

  static inline std::sig_atomic_t volatile requested_ = 0;
};

}  // namespace examples
