// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief What files say of a tensor: its name, its element type as files name it, its extents.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

/// An element type of the safetensors format.
struct FileDType {
  std::string_view name;      ///< As files name it: "BF16".
  std::size_t bits = 0;       ///< Of an element.
  std::optional<DType> type;  ///< Ours; none for what no layer computes with.
};

/// All element types of the format. Files hold tensors of later types first, so that all tensors
/// are aligned to their elements.
inline constexpr std::array<FileDType, 22> file_dtypes{{
    {"BOOL", 8, std::nullopt},
    {"F4", 4, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"U8", 8, DType::u8},
    {"I8", 8, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},
    {"F8_E4M3", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E5M2FNUZ", 8, std::nullopt},
    {"I16", 16, std::nullopt},
    {"U16", 16, std::nullopt},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"I32", 32, DType::i32},
    {"U32", 32, std::nullopt},
    {"F32", 32, DType::f32},
    {"C64", 64, std::nullopt},
    {"F64", 64, DType::f64},
    {"I64", 64, DType::i64},
    {"U64", 64, std::nullopt},
}};

/// The element type that files call \p name; null if the format has none.
[[nodiscard]] FileDType const* find_file_dtype(std::string_view name) noexcept;

/// What files call \p type.
[[nodiscard]] std::string_view file_name_of(DType type) noexcept;

/// A tensor as files know it. Tensors of types and ranks that no layer knows are carried over byte
/// for byte, so type and extents are the file's.
struct TensorInfo {
  std::string name;
  std::string dtype;                  ///< One of \ref file_dtypes.
  std::vector<std::int64_t> extents;  ///< Outermost first.

  /// Our element type; none if we have none for \ref dtype.
  [[nodiscard]] std::optional<DType> type() const noexcept;
  /// \throws Error (unsupported) for more than \ref Shape::max_rank extents.
  [[nodiscard]] Shape shape() const;
  /// The number of elements. Precondition: \ref checked_bytes accepts the tensor.
  [[nodiscard]] std::size_t size() const noexcept;
  /// Precondition: likewise.
  [[nodiscard]] Bytes bytes() const noexcept;

  friend bool operator==(TensorInfo const&, TensorInfo const&) = default;
};

/// The tensor of \p spec as files know it.
[[nodiscard]] TensorInfo tensor_info(TensorSpec const& spec);

/// "BF16[2, 3]"
[[nodiscard]] std::string to_string(TensorInfo const& tensor);

namespace detail {

inline constexpr std::size_t most_file_rank = 64;  // as in PyTorch and NumPy

/// A size that offsets of files (off_t) can express.
inline constexpr std::uint64_t most_file_bytes = std::numeric_limits<std::int64_t>::max();

}  // namespace detail

/// The bytes of a tensor, or what is wrong with its type or extents.
struct CheckedBytes {
  Bytes bytes = 0;
  char const* field = nullptr;  ///< "dtype" or "shape"; null if nothing is wrong.
  std::string fault;            ///< "is 'F7', which the format does not know".
};

/// Checks the type and the extents of \p tensor: no negative extent, at most 64 of them, whole
/// bytes, and a size that a file can have.
[[nodiscard]] CheckedBytes checked_bytes(TensorInfo const& tensor);

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/io/impl/tensor_info.ipp>
#endif
