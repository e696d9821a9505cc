// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Compares what a layer says of itself at two extents.

#include <roundpipe/config.hpp>
#include <roundpipe/model/model_description.hpp>

#include <string>
#include <vector>

namespace roundpipe::testing::detail {

/// What breaks rule 6 of \ref roundpipe::Layer.
[[nodiscard]] std::vector<std::string> compare_tables(LayerFacts const& capacity,
                                                      LayerFacts const& smaller);

}  // namespace roundpipe::testing::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/testing/impl/table_check.ipp>
#endif
