// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/half.hpp>
#include <roundpipe/core/layer_tensors.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/testing/layer_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

namespace roundpipe::testing::detail {

/// Calls \p f with a value-initialized element of \p type.
template <class F>
decltype(auto) visit_element(DType type, F&& f) {
  switch (type) {
    case DType::i64:
      return f(std::int64_t{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::u8:
      return f(std::uint8_t{});
    default:
      return visit_floating(type, f);
  }
}

ROUNDPIPE_INLINE double element(Image const& image, Buffer const& buffer, std::size_t i) {
  return visit_element(buffer.dtype, [&](auto value) {
    std::memcpy(&value, image.data() + buffer.offset + i * sizeof(value), sizeof(value));
    return static_cast<double>(value);
  });
}

ROUNDPIPE_INLINE void set_element(Image& image, Buffer const& buffer, std::size_t i, double value) {
  visit_element(buffer.dtype, [&]<class T>(T) {
    T rounded{};
    if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
      rounded = T(static_cast<float>(value));
    } else {
      rounded = static_cast<T>(value);
    }
    std::memcpy(image.data() + buffer.offset + i * sizeof(T), &rounded, sizeof(T));
  });
}

ROUNDPIPE_INLINE void fill(Image& image, Buffer const& buffer, std::byte value) {
  std::fill_n(image.data() + buffer.offset, buffer.bytes(), value);
}

ROUNDPIPE_INLINE std::string Buffer::name() const {
  static constexpr char const* roles[] = {"parameter",
                                          "input",
                                          "side input",
                                          "output",
                                          "result",
                                          "output gradient",
                                          "input gradient",
                                          "parameter gradient",
                                          "saved memory",  // the part that the host keeps
                                          "saved memory",
                                          "workspace",
                                          "loss"};
  std::string const text = roles[static_cast<std::size_t>(role)];
  return label.empty() ? text : text + " '" + label + "'";
}

ROUNDPIPE_INLINE char const* LayerPass::name() const noexcept {
  switch (kind) {
    case Kind::saving_forward:
      return "saving forward";
    case Kind::evaluation:
      return "forward of evaluate";
    case Kind::backward:
      return "backward";
    default:
      return "forward";
  }
}

ROUNDPIPE_INLINE bool LayerPass::writes(Role role) const noexcept {
  switch (role) {
    case Role::workspace:
    case Role::loss:
      return true;
    case Role::output:
      return kind != Kind::backward;
    case Role::result:
      return kind == Kind::evaluation;
    case Role::kept:
    case Role::saved:
      return kind == Kind::saving_forward;
    case Role::input_gradient:
    case Role::parameter_gradient:
      return kind == Kind::backward;
    default:
      return false;
  }
}

ROUNDPIPE_INLINE LayerLayout::LayerLayout(LayerFacts const& facts,
                                          LayerFacts const& capacity,
                                          std::size_t level)
    : tables_(&facts), carries_(facts.carries) {
  auto const add_table = [&](Role role,
                             TensorTable const& table,
                             TensorTable const& at_capacity,
                             bool gradients = false) {
    for (std::size_t i = 0; i < table.size(); ++i) {
      auto const present = !gradients || is_floating(table[i].dtype);
      add(role, table[i], at_capacity[i].bytes(), present);
    }
  };
  for (auto const& spec : facts.parameters) {
    add(Role::parameter, spec.tensor, spec.tensor.bytes());
  }
  add_table(Role::input, facts.input, capacity.input);
  add_table(Role::side_input, facts.side_inputs, capacity.side_inputs);
  add_table(Role::output, facts.boundary, capacity.boundary);
  add_table(Role::result, facts.results, capacity.results);
  add_table(Role::output_gradient, facts.boundary, capacity.boundary, true);
  add_table(Role::input_gradient, facts.input, capacity.input, true);
  for (auto const& spec : facts.parameters) {
    auto wide = spec.tensor;
    wide.dtype = accumulation_type(wide.dtype);
    add(Role::parameter_gradient, wide, wide.bytes(), !spec.frozen);
  }
  auto const add_bytes = [&](Role role, Bytes bytes, Bytes at_capacity) {
    add(role, {"", {static_cast<std::int64_t>(bytes)}, DType::u8}, at_capacity);
  };
  auto const kept = facts.save_levels[level];
  auto const kept_at_capacity = capacity.save_levels[level];
  add_bytes(Role::kept, kept, kept_at_capacity);
  add_bytes(Role::saved,
            facts.footprint.saved_bytes - kept,
            capacity.footprint.saved_bytes - kept_at_capacity);
  if (facts.is_loss) {
    add(Role::loss, {"", {1}, DType::f64}, sizeof(double));
  }
  add_bytes(Role::workspace, facts.footprint.workspace_bytes, capacity.footprint.workspace_bytes);
}

ROUNDPIPE_INLINE void LayerLayout::add(Role role,
                                       TensorSpec const& spec,
                                       Bytes capacity_bytes,
                                       bool present) {
  buffers_.push_back({role, spec.name, spec.shape, spec.dtype, bytes_, present});
  bytes_ = align_up(bytes_ + std::max(spec.bytes(), capacity_bytes)) + tensor_alignment_bytes;
}

ROUNDPIPE_INLINE Buffer const& LayerLayout::only(Role role) const {
  return *std::find_if(
      buffers_.begin(), buffers_.end(), [&](Buffer const& b) { return b.role == role; });
}

ROUNDPIPE_INLINE LayerTensors LayerLayout::tensors(DeviceBytes block, LayerPass const& pass) const {
  auto const is_backward = pass.kind == LayerPass::Kind::backward;
  auto const saves = is_backward || pass.kind == LayerPass::Kind::saving_forward;
  LayerTensors tensors;
  tensors.tables = tables_;
  for (auto const& buffer : buffers_) {
    auto const bytes = block.subspan(buffer.offset, buffer.bytes());
    auto const give = [&](std::vector<DeviceTensor>& list, bool present) {
      list.push_back(present ? DeviceTensor(bytes, buffer.shape, buffer.dtype) : DeviceTensor{});
    };
    auto const give_if = [&](bool found, std::vector<DeviceTensor>& list) {
      if (found) {
        give(list, buffer.present);
      }
    };
    switch (buffer.role) {
      case Role::parameter:
        give(tensors.parameters, pass.gives_parameters);
        break;
      case Role::input:
        give(tensors.inputs, true);
        break;
      case Role::side_input:
        give(tensors.side_inputs, true);
        break;
      case Role::output:
        give_if(!is_backward, tensors.outputs);
        break;
      case Role::result:
        give_if(pass.kind == LayerPass::Kind::evaluation, tensors.results);
        break;
      case Role::output_gradient:
        give_if(is_backward, tensors.output_gradients);
        break;
      case Role::input_gradient:
        give_if(is_backward, tensors.input_gradients);
        break;
      case Role::parameter_gradient:
        give_if(is_backward, tensors.parameter_gradients);
        break;
      case Role::kept:
        tensors.kept = saves && !bytes.empty() ? bytes : DeviceBytes{};
        break;
      case Role::saved:
        tensors.saved = saves && !bytes.empty() ? bytes : DeviceBytes{};
        break;
      case Role::workspace:
        tensors.workspace = bytes;
        break;
      case Role::loss:
        tensors.loss = {reinterpret_cast<double*>(bytes.device_pointer()), 1};
        break;
    }
  }
  if (pass.in_place) {
    auto const& from = is_backward ? tensors.output_gradients : tensors.inputs;
    auto& to = is_backward ? tensors.input_gradients : tensors.outputs;
    auto const count = is_backward ? carries_.gradients : carries_.tensors;
    std::copy_n(from.rbegin(), count, to.rbegin());
  }
  return tensors;
}

ROUNDPIPE_INLINE std::vector<Buffer> LayerLayout::of_role(Role role) const {
  std::vector<Buffer> found;
  std::copy_if(buffers_.begin(), buffers_.end(), std::back_inserter(found), [&](Buffer const& b) {
    return b.role == role;
  });
  return found;
}

ROUNDPIPE_INLINE void LayerLayout::copy_carried(Image& image, LayerPass const& pass) const {
  auto const is_backward = pass.kind == LayerPass::Kind::backward;
  auto const from = of_role(is_backward ? Role::output_gradient : Role::input);
  auto const to = of_role(is_backward ? Role::input_gradient : Role::output);
  auto const count = is_backward ? carries_.gradients : carries_.tensors;
  for (std::size_t j = 1; j <= count; ++j) {
    auto const& source = from[from.size() - j];
    std::copy_n(image.data() + source.offset,
                source.present ? source.bytes() : 0,
                image.data() + to[to.size() - j].offset);
  }
}

ROUNDPIPE_INLINE std::string LayerLayout::text_of(Bytes byte) const {
  auto const after = std::find_if(
      buffers_.begin(), buffers_.end(), [&](Buffer const& b) { return b.offset > byte; });
  auto const behind =
      after == buffers_.begin() ? byte : byte - (after - 1)->offset - (after - 1)->bytes();
  if (after == buffers_.begin() || (after != buffers_.end() && after->offset - byte <= behind)) {
    return std::to_string(after->offset - byte) + " bytes before " + after->name();
  }
  return std::to_string(behind) + " bytes behind the end of " + (after - 1)->name();
}

}  // namespace roundpipe::testing::detail
