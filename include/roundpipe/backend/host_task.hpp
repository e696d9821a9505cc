// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A move-only callable that stores small callables inside itself.

#include <roundpipe/config.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace roundpipe::detail {

/// Calls \p f through code that exists once in a program. Reason: where a compiler inlines a kernel
/// in two places, it may fuse or vectorize the kernel's sums differently; an inline stream must
/// give the same bits as a stream with a thread.
template <class F>
#if defined(__GNUC__) && !defined(__clang__)
[[gnu::noinline, gnu::noclone]]
#elif defined(__clang__)
[[gnu::noinline]]
#endif
void call_kernel(F& f) {
  static_cast<void>(std::invoke(f));
}

/// A callable without arguments or result. Up to \ref inline_bytes cost no allocation.
class HostTask {
 public:
  static constexpr std::size_t inline_bytes = 208;

  template <class G>
    requires(!std::same_as<std::remove_cvref_t<G>, HostTask> && std::invocable<std::decay_t<G>&> &&
             std::constructible_from<std::decay_t<G>, G>)
  explicit HostTask(G&& callable) {
    using F = std::decay_t<G>;
    if constexpr (sizeof(F) <= inline_bytes && alignof(F) <= alignof(std::max_align_t) &&
                  std::is_nothrow_move_constructible_v<F>) {
      ::new (static_cast<void*>(storage_)) F(std::forward<G>(callable));
      table_ = &table_of<F>;
    } else {
      auto boxed = [box = std::make_unique<F>(std::forward<G>(callable))] { call_kernel(*box); };
      ::new (static_cast<void*>(storage_)) decltype(boxed)(std::move(boxed));
      table_ = &table_of<decltype(boxed)>;
    }
  }
  HostTask(HostTask&& other) noexcept;
  HostTask& operator=(HostTask&& other) noexcept;
  ~HostTask() { reset(); }

  /// Calls the callable. Precondition: there is one (neither moved from nor reset).
  void operator()() { table_->call(storage_); }

  /// Destroys the callable.
  void reset() noexcept;

 private:
  struct Table {
    void (*call)(void*);
    void (*relocate)(void* from, void* to) noexcept;
    void (*destroy)(void*) noexcept;
  };

  template <class F>
  static F& target(void* storage) noexcept {
    return *std::launder(static_cast<F*>(storage));
  }

  template <class F>
  static constexpr Table table_of{[](void* f) { call_kernel(target<F>(f)); },
                                  [](void* from, void* to) noexcept {
                                    ::new (to) F(std::move(target<F>(from)));
                                    target<F>(from).~F();
                                  },
                                  [](void* f) noexcept { target<F>(f).~F(); }};

  Table const* table_ = nullptr;
  alignas(std::max_align_t) std::byte storage_[inline_bytes];
};

}  // namespace roundpipe::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/backend/impl/host_task.ipp>
#endif
