// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where non-template functions are defined: in every file that calls them, or in a library
/// that is compiled once.
/// The target `roundpipe::roundpipe` is header-only: headers include their definitions from
/// `impl/NAME.ipp`. The target `roundpipe::compiled` defines \c ROUNDPIPE_COMPILED for everything
/// that links it and provides a static library of the same definitions; headers then only declare.
/// All files of a program must use the same mode: the linker refuses a mixture.

/// \def ROUNDPIPE_INLINE
/// \brief Begins each definition in an `.ipp` file: \c inline in header-only mode.
#ifdef ROUNDPIPE_COMPILED
#  define ROUNDPIPE_INLINE
#else
#  define ROUNDPIPE_INLINE inline
#endif

// Linkers refuse a program that mixes the two modes. In each mode, the section of a first name
// defines a second name. All files of one mode share the first name, and linkers keep one of the
// sections. Files of both modes bring two sections and thus two definitions of the second name. The
// second name is the text of the linker's message.
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
