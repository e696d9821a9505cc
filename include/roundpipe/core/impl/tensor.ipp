// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe {

ROUNDPIPE_INLINE std::string to_string(Shape const& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.rank(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text + "]";
}

ROUNDPIPE_INLINE TensorTable::TensorTable(std::initializer_list<TensorSpec> specs) {
  for (auto const& spec : specs) {
    add(spec);
  }
}

ROUNDPIPE_INLINE std::size_t TensorTable::add(TensorSpec spec) {
  offsets_.push_back(bytes_);
  bytes_ += align_up(spec.bytes());
  specs_.push_back(std::move(spec));
  return specs_.size() - 1;
}

ROUNDPIPE_INLINE std::string to_string(TensorTable const& table) {
  std::string text = "{";
  for (std::size_t i = 0; i < table.size(); ++i) {
    text += (i == 0 ? "" : ", ") + table[i].name + " " + std::string(name_of(table[i].dtype)) +
            to_string(table[i].shape);
  }
  return text + "}";
}

ROUNDPIPE_INLINE TensorTable TensorTable::first(std::size_t count) const {
  TensorTable result;
  for (std::size_t i = 0; i < count; ++i) {
    result.add(specs_[i]);
  }
  return result;
}

ROUNDPIPE_INLINE DeviceTensor DeviceTensor::reshaped(Shape const& shape) const {
  require(
      shape.size() == size(), Errc::invalid_argument, "a reshape must keep the number of elements");
  return {memory_, shape, dtype_};
}

ROUNDPIPE_INLINE void require_alike(DeviceTensor const& a, DeviceTensor const& b) {
  require(a.size() == b.size() && a.dtype() == b.dtype(),
          Errc::invalid_argument,
          "two tensors must have the same type and number of elements");
}

ROUNDPIPE_INLINE void views(std::vector<DeviceTensor>& list,
                            TensorTable const& table,
                            DeviceBytes block) {
  list.clear();
  for (std::size_t i = 0; i < table.size(); ++i) {
    list.emplace_back(
        block.subspan(table.offset(i), table[i].bytes()), table[i].shape, table[i].dtype);
  }
}

ROUNDPIPE_INLINE std::vector<DeviceTensor> views(TensorTable const& table, DeviceBytes block) {
  std::vector<DeviceTensor> result;
  views(result, table, block);
  return result;
}

ROUNDPIPE_INLINE DeviceTensor TensorCarver::take(Shape const& shape, DType dtype) {
  auto const bytes = shape.size() * size_of(dtype);
  auto const offset = used_;
  used_ += align_up(bytes);
  if (counts_) {
    return {};
  }
  if (offset - before_ >= block_.size() && !rest_.empty()) {
    before_ += block_.size();
    block_ = std::exchange(rest_, {});
  }
  require(offset - before_ + bytes <= block_.size(),
          Errc::over_budget,
          "a layer takes more memory than its footprint says");
  return {block_.subspan(offset - before_, bytes), shape, dtype};
}

}  // namespace roundpipe
