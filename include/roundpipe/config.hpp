// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where non-template functions are defined: in every file, or in a library compiled once.
/// `roundpipe::roundpipe` is header-only: headers include their definitions from `impl/NAME.ipp`.
/// `roundpipe::compiled` defines \c ROUNDPIPE_COMPILED and provides a library of the same
/// definitions; headers then only declare. The linker refuses a program that mixes both modes.
/// The library also holds the vectors that every program would compile longest: `extern template`.

// nvcc's device pass makes no host code, and so needs no definitions of host functions.
#if defined(__CUDA_ARCH__) && !defined(ROUNDPIPE_COMPILED)
#  define ROUNDPIPE_COMPILED
#endif
/// \def ROUNDPIPE_INLINE
/// \brief Begins each definition in an `.ipp` file: \c inline in header-only mode.
#ifdef ROUNDPIPE_COMPILED
#  define ROUNDPIPE_INLINE
#else
#  define ROUNDPIPE_INLINE inline
#endif

/// \def ROUNDPIPE_HOST_DEVICE
/// \brief Begins what kernels may call, too.
#ifdef __CUDACC__
#  define ROUNDPIPE_HOST_DEVICE __host__ __device__
#else
#  define ROUNDPIPE_HOST_DEVICE
#endif

// The linker's check: in each mode, the section of a first name defines a second one, whose text is
// the message. Linkers keep one section of each first name: two of them define the second twice.
#if defined(__ELF__)
extern "C" {
#  ifdef ROUNDPIPE_COMPILED
[[gnu::used, gnu::visibility("hidden")]] inline char roundpipe_is_compiled = 0;
[[gnu::visibility("hidden"), gnu::alias("roundpipe_is_compiled")]]
#  else
[[gnu::used, gnu::visibility("hidden")]] inline char roundpipe_is_header_only = 0;
[[gnu::visibility("hidden"), gnu::alias("roundpipe_is_header_only")]]
#  endif
extern char roundpipe_is_header_only_in_one_file_and_compiled_in_another;
}
#endif
