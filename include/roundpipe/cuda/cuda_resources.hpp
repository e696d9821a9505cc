// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What the operations of a CUDA backend keep between calls: handles of libraries, plans,
/// chosen algorithms, loaded kernels.

#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <typeindex>
#include <typeinfo>

namespace roundpipe::cu {

/// \brief One object of each type that is asked for, made at the first request.
///
/// A backend has one of these, and its streams lead to it (\ref CudaStream::resources). So the
/// backend need not know what operations keep, and two backends in a process share nothing, unless
/// they are told to (\ref CudaBackendOptions::resources).
///
/// Any thread may call any member. Objects live as long as this one, which must outlive the work of
/// all streams that lead to it.
class CudaResources {
 public:
  CudaResources() = default;
  CudaResources(CudaResources const&) = delete;
  CudaResources& operator=(CudaResources const&) = delete;

  /// The object of type \p T. The first call constructs it: from these resources where the
  /// constructor takes them, else without arguments. \throws What the constructor throws; the next
  /// call tries again then.
  template <class T>
  [[nodiscard]] T& get() {
    auto& slot = slot_of(typeid(T));
    std::lock_guard const lock(slot.making);
    if (slot.object == nullptr) {
      if constexpr (std::is_constructible_v<T, CudaResources&>) {
        slot.object = std::make_shared<T>(*this);
      } else {
        slot.object = std::make_shared<T>();
      }
    }
    return *static_cast<T*>(slot.object.get());
  }

 private:
  struct Slot {
    std::mutex making;  ///< One for each type: a slow constructor holds up only who asks for it.
    std::shared_ptr<void> object;
  };

  [[nodiscard]] Slot& slot_of(std::type_index type) {
    std::lock_guard const lock(mutex_);
    return slots_[type];
  }

  std::mutex mutex_;
  std::map<std::type_index, Slot> slots_;
};

}  // namespace roundpipe::cu
