// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::string ModelDescription::name_of(std::size_t layer) const {
  return "layer " + std::to_string(layer) + " (" + layers[layer].name + ")";
}

namespace detail {

ROUNDPIPE_INLINE void check_levels(ModelDescription const& model, std::size_t layer) {
  auto const& levels = model.layers[layer].save_levels;
  auto good = levels.back() == model.layers[layer].footprint.saved_bytes && levels.size() < 256;
  for (std::size_t l = 1; good && l < levels.size(); ++l) {
    auto const is_last = l + 1 == levels.size();
    good = levels[l - 1] <= levels[l] && (is_last || levels[l] == align_up(levels[l]));
  }
  if (!good) {
    throw Error(Errc::invalid_argument,
                model.name_of(layer) +
                    ": its save levels do not ascend, behind whole tensors, to all that it saves");
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
    bytes += is_floating(spec.dtype) ? align_up(spec.bytes()) : 0;
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
