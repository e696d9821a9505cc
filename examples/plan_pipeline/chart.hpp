// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The frame of the program's charts.

#include <string_view>

/// Pixels, and colours.
namespace plan_pipeline::chart {

inline constexpr double left = 70;
inline constexpr double top = 50;
inline constexpr double width = 620;
inline constexpr double height = 300;
inline constexpr double font = 11;
inline constexpr std::string_view ink = "#000000";
inline constexpr std::string_view grid = "#d9d9d9";

}  // namespace plan_pipeline::chart
