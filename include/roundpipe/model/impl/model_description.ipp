// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/model_description.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::string ModelDescription::name_of(std::size_t layer) const {
  return detail::numbered_name(layer, layers[layer].name);
}

namespace detail {

ROUNDPIPE_INLINE std::string numbered_name(std::size_t layer, std::string const& name) {
  return "layer " + std::to_string(layer) + " (" + name + ")";
}

/// The bytes of \p spec, or one more than \ref most_layer_bytes where they are more.
[[nodiscard]] ROUNDPIPE_INLINE Bytes limited_bytes(TensorSpec const& spec) {
  Bytes bytes = size_of(spec.dtype);
  for (std::size_t i = 0; i < spec.shape.rank(); ++i) {
    auto const extent = static_cast<Bytes>(spec.shape[i]);
    if (extent == 0) {
      return 0;
    }
    bytes = extent > most_layer_bytes / bytes ? most_layer_bytes + 1 : bytes * extent;
  }
  return bytes;
}

ROUNDPIPE_INLINE void check_layer(ModelDescription const& model, std::size_t layer) {
  auto const& facts = model.layers[layer];
  auto const refuse = [&](char const* member, int rule, std::string const& value) {
    throw broken_rule(model.name_of(layer) + ": Layer::" + member, rule, value);
  };
  auto const check_bytes = [&](char const* member, Bytes bytes, auto const& what) {
    if (bytes > most_layer_bytes) {
      refuse(member, 9, what() + " takes more than " + std::to_string(most_layer_bytes) + " bytes");
    }
  };
  auto const add = [&](char const* member, Bytes& bytes, TensorSpec const& spec) {
    bytes += limited_bytes(spec);
    check_bytes(member, bytes, [&] {
      return "the table up to '" + spec.name + "' " + to_string(spec.shape);
    });
  };
  Bytes parameter_bytes = 0;
  std::set<std::string> names;
  for (auto const& parameter : facts.parameters) {
    add("parameters", parameter_bytes, parameter.tensor);
    if (!names.insert(parameter.tensor.name).second) {
      refuse("parameters", 9, "two parameters are called '" + parameter.tensor.name + "'");
    }
  }
  auto const check_table = [&](char const* member, TensorTable const& table) {
    Bytes bytes = 0;
    for (auto const& spec : table) {
      add(member, bytes, spec);
    }
  };
  check_table("input", facts.input);
  check_table("boundary", facts.boundary);
  check_table("side_inputs", facts.side_inputs);
  check_table("results", facts.results);
  auto const check_footprint = [&](Bytes bytes, char const* what) {
    check_bytes("footprint", bytes, [&] { return what + (" of " + std::to_string(bytes)); });
  };
  check_footprint(facts.footprint.saved_bytes, "saved_bytes");
  check_footprint(facts.footprint.workspace_bytes, "workspace_bytes");
  auto flops = facts.work.replay_flops;
  flops.insert(flops.end(), {facts.work.forward_flops, facts.work.backward_flops});
  for (auto const count : flops) {
    if (!(count >= 0) || !std::isfinite(count)) {
      refuse("work", 9, std::to_string(count) + " FLOPs");
    }
  }
  auto const& levels = facts.save_levels;  // 0, then those that are listed
  auto good = levels.back() == facts.footprint.saved_bytes && levels.size() < 256;
  for (std::size_t l = 1; good && l < levels.size(); ++l) {
    auto const is_last = l + 1 == levels.size();
    good = levels[l - 1] <= levels[l] && (is_last || levels[l] == align_up(levels[l]));
  }
  if (!good) {
    std::string text = "they do not ascend, behind whole tensors, to the " +
                       std::to_string(facts.footprint.saved_bytes) + " bytes that it saves:";
    for (std::size_t l = 1; l < levels.size(); ++l) {
      text += " " + std::to_string(levels[l]);
    }
    refuse("save_levels", 10, text);
  }
  auto const [tensors, gradients] = facts.carries;
  auto const& input = facts.input;
  auto const& boundary = facts.boundary;
  auto same = gradients <= tensors && tensors <= std::min(input.size(), boundary.size());
  for (std::size_t t = 1; same && t <= tensors; ++t) {
    auto const& taken = input[input.size() - t];
    auto const& handed = boundary[boundary.size() - t];
    same = taken.shape == handed.shape && taken.dtype == handed.dtype;
  }
  if (!same) {
    refuse("carries",
           12,
           std::to_string(tensors) + " tensors, of which " + std::to_string(gradients) +
               " with their gradients, of " + to_string(input) + " and " + to_string(boundary));
  }
}

ROUNDPIPE_INLINE bool same_tensors(TensorTable const& a, TensorTable const& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) {
    same = a[i].shape == b[i].shape && a[i].dtype == b[i].dtype;
  }
  return same;
}

}  // namespace detail

ROUNDPIPE_INLINE TensorTable gradient_table(TensorTable const& boundary) {
  TensorTable gradients;
  for (auto const& spec : boundary) {
    if (is_floating(spec.dtype)) {
      gradients.add(spec);
    }
  }
  return gradients;
}

ROUNDPIPE_INLINE Bytes gradient_bytes(TensorTable const& boundary) {
  Bytes bytes = 0;
  for (auto const& spec : boundary) {
    bytes = is_floating(spec.dtype) ? align_up(bytes) + spec.bytes() : bytes;
  }
  return bytes;
}

ROUNDPIPE_INLINE void gradient_views(std::vector<DeviceTensor>& list,
                                     TensorTable const& boundary,
                                     DeviceBytes block) {
  list.clear();
  TensorCarver carver(block);
  for (auto const& spec : boundary) {
    list.push_back(is_floating(spec.dtype) ? carver.take(spec.shape, spec.dtype) : DeviceTensor{});
  }
}

}  // namespace roundpipe
