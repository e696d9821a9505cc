// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/layer_tensors.hpp>
#include <roundpipe/core/parameter.hpp>
#include <roundpipe/core/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe {

namespace detail {

/// What is known of a list without its tensors.
struct ListFacts {
  char const* accessor;
  char const* noun;
  std::vector<DeviceTensor> LayerTensors::* tensors;
  TensorTable LayerTables::* table;  ///< Null: the table of parameters.
};

[[nodiscard]] ROUNDPIPE_INLINE ListFacts facts_of(TensorList list) {
  using T = LayerTensors;
  using L = LayerTables;
  switch (list) {
    case TensorList::parameter:
      return {"parameter", "parameter", &T::parameters, nullptr};
    case TensorList::input:
      return {"input", "input", &T::inputs, &L::input};
    case TensorList::side_input:
      return {"side_input", "side input", &T::side_inputs, &L::side_inputs};
    case TensorList::output:
      return {"output", "output", &T::outputs, &L::boundary};
    case TensorList::result:
      return {"result", "result", &T::results, &L::results};
    case TensorList::output_gradient:
      return {"output_gradient", "output gradient", &T::output_gradients, &L::boundary};
    case TensorList::input_gradient:
      return {"input_gradient", "input gradient", &T::input_gradients, &L::input};
    case TensorList::parameter_gradient:
      break;
  }
  return {"parameter_gradient", "parameter gradient", &T::parameter_gradients, nullptr};
}

/// The names of a list, by number.
[[nodiscard]] ROUNDPIPE_INLINE std::vector<std::string_view> names_of(LayerTables const& tables,
                                                                      ListFacts const& facts) {
  std::vector<std::string_view> names;
  if (facts.table == nullptr) {
    for (auto const& spec : tables.parameters) {
      names.push_back(spec.tensor.name);
    }
  } else {
    for (auto const& spec : tables.*facts.table) {
      names.push_back(spec.name);
    }
  }
  return names;
}

/// "layer 3 (block)", or "layer 3" where nobody names it.
[[nodiscard]] ROUNDPIPE_INLINE std::string layer_text(LayerTensors const& tensors,
                                                      std::size_t layer) {
  return "layer " + std::to_string(layer) +
         (tensors.tables == nullptr ? "" : " (" + tensors.tables->name + ")");
}

/// The number of the tensor with this name.
[[nodiscard]] ROUNDPIPE_INLINE std::size_t number_of(LayerTensors const& tensors,
                                                     std::size_t layer,
                                                     ListFacts const& facts,
                                                     std::string_view name) {
  if (tensors.tables == nullptr) {
    throw Error(Errc::invalid_argument,
                layer_text(tensors, layer) + " is called without LayerTensors::tables, so " +
                    facts.accessor + "(\"" + std::string(name) + "\") cannot be found by name");
  }
  auto const names = names_of(*tensors.tables, facts);
  auto const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    std::string there;
    for (auto const other : names) {
      there += (there.empty() ? "" : ", ") + std::string(other);
    }
    throw Error(Errc::invalid_argument,
                layer_text(tensors, layer) + " asks for " + facts.accessor + "(\"" +
                    std::string(name) + "\"), but its table has {" + there + "}");
  }
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace detail

ROUNDPIPE_INLINE DeviceTensor const& find_tensor(LayerTensors const& tensors,
                                                 std::size_t layer,
                                                 TensorList list,
                                                 TensorKey const& key) {
  auto const facts = detail::facts_of(list);
  auto const& found = tensors.*facts.tensors;
  auto const number =
      key.named() ? detail::number_of(tensors, layer, facts, key.name()) : key.number();
  if (number >= found.size()) {
    throw Error(Errc::invalid_argument,
                detail::layer_text(tensors, layer) + " asks for " + facts.accessor + "(" +
                    std::to_string(number) + "), but this call has " +
                    std::to_string(found.size()) + " " + facts.noun +
                    (found.size() == 1 ? "" : "s"));
  }
  return found[number];
}

ROUNDPIPE_INLINE DeviceTensor const& find_tensor(LayerTensors const& tensors,
                                                 std::size_t layer,
                                                 TensorList list,
                                                 TensorKey const& key,
                                                 DType type) {
  auto const& tensor = find_tensor(tensors, layer, list, key);
  if (tensor.present() && tensor.dtype() != type) {
    auto const facts = detail::facts_of(list);
    auto const number = static_cast<std::size_t>(&tensor - (tensors.*facts.tensors).data());
    auto const name =
        tensors.tables == nullptr
            ? std::string()
            : " '" + std::string(detail::names_of(*tensors.tables, facts)[number]) + "'";
    throw Error(Errc::invalid_argument,
                detail::layer_text(tensors, layer) + " asks for " + facts.noun + " " +
                    std::to_string(number) + name + " as " + std::string(name_of(type)) +
                    ", but it is " + std::string(name_of(tensor.dtype())));
  }
  return tensor;
}

}  // namespace roundpipe
