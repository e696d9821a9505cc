// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Where the definitions of functions that are no templates live: in every file that calls
/// them, or in a library that is compiled once.
///
/// The target `roundpipe::roundpipe` is header-only: headers include their definitions, which lie
/// in `impl/NAME.ipp`. The target `roundpipe::compiled` defines \c ROUNDPIPE_COMPILED for all that
/// link it, and brings a static library of the same definitions: headers then declare. A program
/// does one or the other in all its files; the linker refuses one that does both.

/// \def ROUNDPIPE_INLINE
/// \brief Begins each definition in an `.ipp` file: \c inline where every file has its own.
#ifdef ROUNDPIPE_COMPILED
#  define ROUNDPIPE_INLINE
#else
#  define ROUNDPIPE_INLINE inline
#endif

// Linkers refuse a program that mixes the two modes: in each mode a second name is defined in the
// section of a first one. Files of one mode share the first, and linkers keep one of the sections.
// Files of both modes keep two sections, and with them two definitions of the second name, which is
// what the linker's message says.
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
