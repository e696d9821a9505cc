// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The buffers of one layer's calls in one block of memory, with guards around each.

#include <roundpipe/config.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace roundpipe::testing::detail {

/// What a buffer is for.
enum class Role : std::uint8_t {
  parameter,
  input,
  side_input,
  output,
  result,
  output_gradient,
  input_gradient,
  parameter_gradient,
  kept,  ///< The bytes of a save level, which lie apart from \c saved.
  saved,
  workspace,
  loss,
};

/// One buffer of a layer's calls.
struct Buffer {
  Role role = Role::parameter;
  std::string label;  ///< The tensor's name in its table.
  Shape shape;
  DType dtype = DType::u8;
  Bytes offset = 0;
  bool present = true;  ///< Frozen parameters and integer tensors have no gradient.

  /// As messages call it: "output 'y'".
  [[nodiscard]] std::string name() const;
  [[nodiscard]] Bytes bytes() const noexcept { return shape.size() * size_of(dtype); }
};

/// The bytes of all buffers and guards, or of the first of them.
using Image = std::vector<std::byte>;

/// Element \p i of \p buffer.
[[nodiscard]] double element(Image const& image, Buffer const& buffer, std::size_t i);
/// Writes element \p i of \p buffer, rounded to its type.
void set_element(Image& image, Buffer const& buffer, std::size_t i, double value);
/// Sets all bytes of \p buffer.
void fill(Image& image, Buffer const& buffer, std::byte value);

/// How a layer is called.
struct LayerPass {
  enum class Kind : std::uint8_t { forward, saving_forward, evaluation, backward };

  Kind kind = Kind::forward;
  LayerCall call;
  bool gives_parameters = true;
  bool in_place = false;  ///< Carried tensors, or their gradients, are one tensor each.

  [[nodiscard]] char const* name() const noexcept;
  /// Whether the layer may write buffers of \p role.
  [[nodiscard]] bool writes(Role role) const noexcept;
};

/// Where each buffer lies. Behind each there is at least room for the same tensor at capacity, so
/// that a layer that ignores its extents hits a guard. The workspace, which may be far larger than
/// all else, lies last.
class LayerLayout {
 public:
  /// \param level The save level whose bytes lie in \ref Role::kept.
  LayerLayout(LayerFacts const& facts, LayerFacts const& capacity, std::size_t level);

  [[nodiscard]] std::vector<Buffer> const& buffers() const noexcept { return buffers_; }
  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  /// The buffer of a role that has but one.
  [[nodiscard]] Buffer const& only(Role role) const;
  /// The tensors that \p pass finds in \p block.
  [[nodiscard]] LayerTensors tensors(DeviceBytes block, LayerPass const& pass) const;
  /// Copies what \p pass has left in place to where it leaves it otherwise.
  void copy_carried(Image& image, LayerPass const& pass) const;
  /// The text of the place of \p byte, which no buffer holds: "byte 3 behind output 'y'".
  [[nodiscard]] std::string text_of(Bytes byte) const;

 private:
  void add(Role role, TensorSpec const& spec, Bytes capacity_bytes, bool present = true);

  /// The buffers of \p role, in the order of their table.
  [[nodiscard]] std::vector<Buffer> of_role(Role role) const;

  LayerTables const* tables_;
  Carries carries_;
  std::vector<Buffer> buffers_;
  Bytes bytes_ = tensor_alignment_bytes;
};

}  // namespace roundpipe::testing::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/testing/impl/layer_layout.ipp>
#endif
