// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/layer_context.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/runtime/probe/layer_probe.hpp>

#include <cstdint>
#include <vector>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE LayerTensors LayerProbeTensors::evaluation_tensors() const {
  auto tensors = tensors_;
  tensors.results = results_;
  return tensors;
}

ROUNDPIPE_INLINE void LayerProbeTensors::place(LayerFacts const& facts, TensorCarver carver) {
  auto const take = [&](std::vector<DeviceTensor>& list, TensorSpec const& spec, bool present) {
    list.push_back(present ? carver.take(spec.shape, spec.dtype) : DeviceTensor{});
  };
  tensors_.tables = &facts;
  for (auto const& spec : facts.parameters) {
    take(tensors_.parameters, spec.tensor, true);
    auto wide = spec.tensor;
    wide.dtype = accumulation_type(wide.dtype);
    take(tensors_.parameter_gradients, wide, !spec.frozen);
  }
  for (auto const& spec : facts.input) {
    take(tensors_.inputs, spec, true);
    take(tensors_.input_gradients, spec, is_floating(spec.dtype));
  }
  for (auto const& spec : facts.boundary) {
    take(tensors_.outputs, spec, true);
    take(tensors_.output_gradients, spec, is_floating(spec.dtype));
  }
  for (auto const& spec : facts.side_inputs) {
    take(tensors_.side_inputs, spec, true);
  }
  for (auto const& spec : facts.results) {
    take(results_, spec, true);
  }
  auto const bytes_of = [&](Bytes count) -> DeviceBytes {
    auto const tensor = carver.take({static_cast<std::int64_t>(count)}, DType::u8);
    return {tensor.device_pointer(), tensor.present() ? count : 0};
  };
  tensors_.saved = bytes_of(facts.footprint.saved_bytes);
  tensors_.workspace = bytes_of(facts.footprint.workspace_bytes);
  tensors_.loss = {reinterpret_cast<double*>(bytes_of(sizeof(double)).device_pointer()), 1};
  bytes_ = carver.used_bytes();
}

}  // namespace detail

}  // namespace roundpipe
