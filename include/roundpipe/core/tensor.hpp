// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Shapes, tables of named tensors that pack into one block, and views of device tensors.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace roundpipe {

/// Up to six extents, outermost first; tensors are dense and row-major.
class Shape {
 public:
  static constexpr std::size_t max_rank = 6;

  constexpr Shape() noexcept = default;
  /// \throws Error (invalid_argument) for more than \ref max_rank extents or a negative one.
  constexpr Shape(std::initializer_list<std::int64_t> extents) {
    require(extents.size() <= max_rank, Errc::invalid_argument, "a shape has at most 6 extents");
    for (auto const extent : extents) {
      if (extent < 0) {
        throw Error(Errc::invalid_argument,
                    "extent " + std::to_string(rank_) + " of a shape is " + std::to_string(extent));
      }
      extents_[rank_++] = extent;
    }
  }

  [[nodiscard]] constexpr std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] constexpr std::int64_t operator[](std::size_t i) const noexcept {
    assert(i < rank_);
    return extents_[i];
  }
  /// The number of elements: the product of the extents, 1 for rank 0.
  [[nodiscard]] constexpr std::size_t size() const noexcept {
    std::size_t product = 1;
    for (std::size_t i = 0; i < rank_; ++i) {
      product *= static_cast<std::size_t>(extents_[i]);
    }
    return product;
  }
  friend constexpr bool operator==(Shape const&, Shape const&) noexcept = default;

 private:
  std::array<std::int64_t, max_rank> extents_{};
  std::size_t rank_ = 0;
};

[[nodiscard]] std::string to_string(Shape const& shape);

/// A tensor's name, shape and element type.
struct TensorSpec {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;

  [[nodiscard]] Bytes bytes() const noexcept { return shape.size() * size_of(dtype); }
  friend bool operator==(TensorSpec const&, TensorSpec const&) = default;
};

/// A table of named tensors that follow each other in one block, each aligned to \ref
/// tensor_alignment_bytes.
class TensorTable {
 public:
  TensorTable() = default;
  TensorTable(std::initializer_list<TensorSpec> specs);

  /// Appends \p spec and returns its index.
  std::size_t add(TensorSpec spec);

  [[nodiscard]] std::size_t size() const noexcept { return specs_.size(); }
  [[nodiscard]] bool empty() const noexcept { return specs_.empty(); }
  [[nodiscard]] TensorSpec const& operator[](std::size_t i) const noexcept { return specs_[i]; }
  /// The offset of tensor \p i in the block.
  [[nodiscard]] Bytes offset(std::size_t i) const noexcept { return offsets_[i]; }
  /// The bytes of the block, padding included.
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  /// The bytes up to the end of the last tensor: nobody writes the padding behind it.
  [[nodiscard]] Bytes content_bytes() const noexcept {
    return empty() ? 0 : offsets_.back() + specs_.back().bytes();
  }
  /// The first \p count tensors. Precondition: the table has so many.
  [[nodiscard]] TensorTable first(std::size_t count) const;

  [[nodiscard]] auto begin() const noexcept { return specs_.begin(); }
  [[nodiscard]] auto end() const noexcept { return specs_.end(); }

  friend bool operator==(TensorTable const&, TensorTable const&) = default;

 private:
  std::vector<TensorSpec> specs_;
  std::vector<Bytes> offsets_;
  Bytes bytes_ = 0;
};

[[nodiscard]] std::string to_string(TensorTable const& table);

/// A view of a device tensor: memory, shape and element type.
class DeviceTensor {
 public:
  constexpr DeviceTensor() noexcept = default;
  /// Precondition: \p memory holds at least the tensor's bytes.
  constexpr DeviceTensor(DeviceBytes memory, Shape const& shape, DType dtype) noexcept
      : memory_(memory), shape_(shape), dtype_(dtype) {
    assert(memory.size() >= shape.size() * size_of(dtype));
  }

  [[nodiscard]] constexpr Shape const& shape() const noexcept { return shape_; }
  [[nodiscard]] constexpr DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return shape_.size(); }
  [[nodiscard]] constexpr Bytes size_bytes() const noexcept { return size() * size_of(dtype_); }
  [[nodiscard]] constexpr std::byte* device_pointer() const noexcept {
    return memory_.device_pointer();
  }
  [[nodiscard]] constexpr DeviceBytes bytes() const noexcept {
    return {device_pointer(), size_bytes()};
  }
  /// Whether there is a tensor. A tensor without elements and without an address counts as absent.
  [[nodiscard]] constexpr bool present() const noexcept {
    return memory_.device_pointer() != nullptr;
  }

  /// The elements as \p T; none where the tensor is absent.
  /// \throws Error (invalid_argument) when \p T does not match the dtype.
  template <class T>
  [[nodiscard]] TensorView<T> as() const {
    if (!present()) {
      return {};
    }
    require(dtype_of<std::remove_const_t<T>> == dtype_,
            Errc::invalid_argument,
            "a device tensor was read as a different element type than its own");
    return TensorView<T>({reinterpret_cast<T*>(memory_.device_pointer()), size()});
  }

  /// The same elements with another shape. \throws Error (invalid_argument) when the sizes differ.
  [[nodiscard]] DeviceTensor reshaped(Shape const& shape) const;

 private:
  DeviceBytes memory_;
  Shape shape_;
  DType dtype_ = DType::f32;
};

/// \throws Error (invalid_argument) unless both have the same element type and number of elements.
void require_alike(DeviceTensor const& a, DeviceTensor const& b);

/// Replaces \p list by views of the tensors in \p block that \p table describes.
void views(std::vector<DeviceTensor>& list, TensorTable const& table, DeviceBytes block);

/// Views of the tensors in \p block that \p table describes.
[[nodiscard]] std::vector<DeviceTensor> views(TensorTable const& table, DeviceBytes block);

/// Hands out tensors from one block of memory, or from two, one after another. Without a block it
/// only counts, so that the same code computes a layer's footprint and uses the block.
class TensorCarver {
 public:
  /// Counts only: the returned tensors are not \c present().
  constexpr TensorCarver() noexcept = default;
  constexpr explicit TensorCarver(DeviceBytes block) noexcept : block_(block), counts_(false) {}
  /// The tensors behind the first `first.size()` bytes come from \p rest. No tensor lies across.
  constexpr TensorCarver(DeviceBytes first, DeviceBytes rest) noexcept
      : block_(first.empty() ? rest : first),
        rest_(first.empty() ? DeviceBytes{} : rest),
        counts_(false) {}

  /// The next tensor, aligned. \throws Error (over_budget) when the block is too small.
  DeviceTensor take(Shape const& shape, DType dtype);
  /// The elements of the next tensor.
  template <class T>
  TensorView<T> take(Shape const& shape) {
    return take(shape, dtype_of<T>).template as<T>();
  }

  /// The bytes handed out so far, padding included.
  [[nodiscard]] constexpr Bytes used_bytes() const noexcept { return used_; }

 private:
  DeviceBytes block_;
  DeviceBytes rest_;  // comes after block_
  Bytes before_ = 0;  // bytes of the block before block_
  Bytes used_ = 0;
  bool counts_ = true;
};

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/core/impl/tensor.ipp>
#endif
