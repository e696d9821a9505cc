// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What is checked of a layer's passes, whatever the layer's type and the backend.

#include <roundpipe/config.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/testing/layer_values.hpp>
#include <roundpipe/testing/watched_passes.hpp>

#include <string>
#include <vector>

namespace roundpipe::testing::detail {

/// The findings of \ref check_layer.
[[nodiscard]] std::vector<std::string> check_passes(LayerFacts const& capacity,
                                                    LayerFacts const& smaller,
                                                    LayerCheckOptions const& options,
                                                    RunPass const& run);

}  // namespace roundpipe::testing::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/testing/impl/layer_checks.ipp>
#endif
