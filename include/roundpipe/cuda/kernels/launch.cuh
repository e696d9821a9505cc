// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#ifndef __CUDACC__
#  error "roundpipe/cuda/kernels/*.cuh hold device code: include them from a .cu file only"
#endif

/// \file
/// \brief How operations launch their kernels: grids, and which kernel for which element types.

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/cuda/device/error.hpp>
#include <roundpipe/cuda/kernels/packs.cuh>

#include <cuda/std/span>
#include <cuda/stream_ref>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

namespace roundpipe::cu::detail {

[[nodiscard]] constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) noexcept {
  return (a + b - 1) / b;
}

/// As many blocks as there is work for, up to what a grid can have. Kernels loop over the rest.
[[nodiscard]] inline unsigned grid_of(std::int64_t blocks) noexcept {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, most));
}

/// Enqueues \p kernel on \p stream, whose device must be current. Does not synchronize.
/// \throws Error that names \p operation when the runtime refuses the launch.
template <class... Parameters, class... Arguments>
void launch(char const* operation,
            ::cuda::stream_ref stream,
            unsigned blocks,
            dim3 threads,
            std::size_t shared_bytes,
            void (*kernel)(Parameters...),
            Arguments const&... arguments) {
  ::cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks);
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream.get();
  check(::cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), operation);
}

/// Makes a function a template, so that only the files that call it compile its kernels:
/// `template <OnUse = OnUse::compiled>`.
enum class OnUse { compiled };

/// The elements of \p t as a kernel's argument.
template <class T>
[[nodiscard]] ::cuda::std::span<T> elements(DeviceTensor const& t) {
  auto const span = t.as<T>();
  return {span.device_pointer(), span.size()};
}

inline constexpr int flat_threads = 256;

/// Calls \p f(offset, count) for the packs of \p size elements, each in one thread of the grid.
template <class View, class F>
__device__ inline void for_each_pack(std::int64_t size, F&& f) {
  auto const step = std::int64_t{gridDim.x} * flat_threads * View::size;
  auto at = (std::int64_t{blockIdx.x} * flat_threads + threadIdx.x) * View::size;
  for (; at < size; at += step) {
    auto const left = size - at;
    f(at, left < View::size ? static_cast<int>(left) : View::size);
  }
}

/// Enqueues a kernel that uses \ref for_each_pack.
template <class View, class... Parameters, class... Arguments>
void launch_flat(char const* operation,
                 ::cuda::stream_ref stream,
                 std::int64_t size,
                 void (*kernel)(Parameters...),
                 Arguments const&... arguments) {
  if (size > 0) {
    launch(operation,
           stream,
           grid_of(divide_up(size, flat_threads * View::size)),
           dim3(flat_threads),
           0,
           kernel,
           arguments...);
  }
}

/// \throws Error (unsupported) unless every tensor that is present is of f32, bf16 or f16.
inline void check_types(char const* operation, std::initializer_list<DeviceTensor const*> tensors) {
  std::string types;
  bool supported = true;
  for (auto const* tensor : tensors) {
    if (tensor->present()) {
      types += (types.empty() ? "" : ", ") + std::string(name_of(tensor->dtype()));
      supported = supported && is_floating(tensor->dtype()) && tensor->dtype() != DType::f64;
    }
  }
  if (!supported) {
    throw Error(
        Errc::unsupported,
        std::string(operation) + ": a GPU computes with f32, bf16 and f16, not with " + types);
  }
}

/// \throws Error (unsupported) unless \p tensor is absent or of f32, as sums and losses are.
inline void check_f32(char const* operation, DeviceTensor const& tensor) {
  if (tensor.present() && tensor.dtype() != DType::f32) {
    throw Error(Errc::unsupported,
                std::string(operation) + ": a GPU sums in f32, not in " +
                    std::string(name_of(tensor.dtype())));
  }
}

/// Names a type in a call of a generic lambda.
template <class T>
struct Tag {
  using type = T;
};

using TensorList = std::initializer_list<DeviceTensor const*>;

/// Whether \p View can read all of \p tensors that are present.
template <class View>
[[nodiscard]] bool fit(TensorList tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](DeviceTensor const* t) {
    return !t->present() || View::fits(*t);
  });
}

/// Calls \p f(view of the tensors \p same, view of the tensors \p other), each a \ref Tag.
///
/// There are fast kernels for tensors \p same of one type in aligned packs, with \p other of the
/// same type or of f32; everything else takes \ref Loose. \p stride must be a multiple of a pack's
/// size for the fast kernels, since offsets of packs are multiples of it.
template <class F>
void visit_views(TensorList same, TensorList other, std::int64_t stride, F&& f) {
  auto const storage = (*same.begin())->dtype();
  auto const of_type = [](TensorList tensors, DType type) {
    return std::all_of(tensors.begin(), tensors.end(), [&](DeviceTensor const* t) {
      return !t->present() || t->dtype() == type;
    });
  };
  bool done = false;
  auto const attempt = [&]<class E, class P>(Tag<E>, Tag<P>) {
    constexpr int size = 16 / sizeof(E);
    using View = Packed<E, size>;
    using Other = Packed<P, size>;
    if (!done && storage == dtype_of<E> && of_type(same, storage) && of_type(other, dtype_of<P>) &&
        stride % size == 0 && fit<View>(same) && fit<Other>(other)) {
      f(Tag<View>{}, Tag<Other>{});
      done = true;
    }
  };
  attempt(Tag<BFloat16>{}, Tag<BFloat16>{});
  attempt(Tag<BFloat16>{}, Tag<float>{});
  attempt(Tag<Float16>{}, Tag<Float16>{});
  attempt(Tag<Float16>{}, Tag<float>{});
  attempt(Tag<float>{}, Tag<float>{});
  if (!done) {
    f(Tag<Loose>{}, Tag<Loose>{});
  }
}

/// The same for operations whose tensors all have one type.
template <class F>
void visit_views(TensorList same, std::int64_t stride, F&& f) {
  auto const storage = (*same.begin())->dtype();
  bool done = false;
  auto const attempt = [&]<class E>(Tag<E>) {
    using View = Packed<E, 16 / sizeof(E)>;
    bool const one_type = std::all_of(same.begin(), same.end(), [&](DeviceTensor const* t) {
      return !t->present() || t->dtype() == dtype_of<E>;
    });
    if (!done && storage == dtype_of<E> && one_type && stride % View::size == 0 &&
        fit<View>(same)) {
      f(Tag<View>{});
      done = true;
    }
  };
  attempt(Tag<BFloat16>{});
  attempt(Tag<Float16>{});
  attempt(Tag<float>{});
  if (!done) {
    f(Tag<Loose>{});
  }
}

}  // namespace roundpipe::cu::detail
