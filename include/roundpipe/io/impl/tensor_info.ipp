// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/tensor_info.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace roundpipe {

ROUNDPIPE_INLINE FileDType const* find_file_dtype(std::string_view name) noexcept {
  auto const* const found = std::find_if(file_dtypes.begin(),
                                         file_dtypes.end(),
                                         [&](FileDType const& type) { return type.name == name; });
  return found == file_dtypes.end() ? nullptr : found;
}

ROUNDPIPE_INLINE std::string_view file_name_of(DType type) noexcept {
  auto const* const found = std::find_if(file_dtypes.begin(),
                                         file_dtypes.end(),
                                         [&](FileDType const& file) { return file.type == type; });
  return found == file_dtypes.end() ? "" : found->name;
}

ROUNDPIPE_INLINE std::optional<DType> TensorInfo::type() const noexcept {
  auto const* const found = find_file_dtype(dtype);
  return found == nullptr ? std::nullopt : found->type;
}

ROUNDPIPE_INLINE Shape TensorInfo::shape() const {
  switch (extents.size()) {
    case 0:
      return {};
    case 1:
      return {extents[0]};
    case 2:
      return {extents[0], extents[1]};
    case 3:
      return {extents[0], extents[1], extents[2]};
    case 4:
      return {extents[0], extents[1], extents[2], extents[3]};
    case 5:
      return {extents[0], extents[1], extents[2], extents[3], extents[4]};
    case Shape::max_rank:
      return {extents[0], extents[1], extents[2], extents[3], extents[4], extents[5]};
    default:
      throw Error(Errc::unsupported,
                  "tensor " + in_quotes(name) + " has " + std::to_string(extents.size()) +
                      " extents; layers know at most " + std::to_string(Shape::max_rank));
  }
}

ROUNDPIPE_INLINE std::size_t TensorInfo::size() const noexcept {
  std::size_t product = 1;
  for (auto const extent : extents) {
    product *= static_cast<std::size_t>(extent);
  }
  return product;
}

ROUNDPIPE_INLINE Bytes TensorInfo::bytes() const noexcept {
  auto const* const found = find_file_dtype(dtype);
  return found == nullptr ? 0 : size() * found->bits / 8;
}

ROUNDPIPE_INLINE TensorInfo tensor_info(TensorSpec const& spec) {
  TensorInfo info{spec.name, std::string(file_name_of(spec.dtype)), {}};
  for (std::size_t i = 0; i < spec.shape.rank(); ++i) {
    info.extents.push_back(spec.shape[i]);
  }
  return info;
}

ROUNDPIPE_INLINE std::string to_string(TensorInfo const& tensor) {
  std::string text = tensor.dtype + "[";
  for (std::size_t i = 0; i < tensor.extents.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(tensor.extents[i]);
  }
  return text + "]";
}

ROUNDPIPE_INLINE CheckedBytes checked_bytes(TensorInfo const& tensor) {
  auto const* const type = find_file_dtype(tensor.dtype);
  if (type == nullptr) {
    std::string known;
    for (auto const& other : file_dtypes) {
      known += (known.empty() ? "" : ", ") + std::string(other.name);
    }
    return {
        0,
        "dtype",
        "is " + in_quotes(tensor.dtype) + ", which the format does not know; it knows " + known};
  }
  if (tensor.extents.size() > detail::most_file_rank) {
    return {0,
            "shape",
            "has " + std::to_string(tensor.extents.size()) + " extents, more than " +
                std::to_string(detail::most_file_rank)};
  }
  // A product of 0 does not excuse the others: readers multiply from left to right.
  std::uint64_t bits = type->bits;
  for (auto const extent : tensor.extents) {
    if (extent < 0) {
      return {0, "shape", "has the extent " + std::to_string(extent)};
    }
    if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(extent), &bits)) {
      return {0, "shape", "is " + to_string(tensor) + ", which no file can hold"};
    }
  }
  if (bits % 8 != 0) {
    return {0,
            "shape",
            "has " + std::to_string(bits / type->bits) + " elements of " +
                std::to_string(type->bits) + " bits, which are no whole bytes"};
  }
  return {bits / 8, nullptr, {}};
}

}  // namespace roundpipe
