// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Low-rank adapters of a trainer, merged into the weights beside which they stand.

#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/nn/lora_config.hpp>
#include <roundpipe/system/worker_pool.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace roundpipe {

/// Holds the adapters of a trainer as they are when this is made.
class LoraMerge {
 public:
  /// \param lora of the trainer's model.
  /// \throws Error (invalid_argument) when the trainer's adapters are not of \p lora, and as the
  ///         trainer's `state` and `read_parameter` do.
  template <class Trainer>
  LoraMerge(Trainer& trainer, nn::LoraConfig const& lora) : lora_(lora) {
    for (auto const& parameter : trainer.state().parameters) {
      auto const& name = parameter.name;
      if (nn::is_lora_parameter(name)) {
        bool const is_a = name.ends_with(".lora_A.weight");
        auto const& shape = parameter.weights.shape;
        if (shape[is_a ? 0 : 1] != lora.rank) {
          throw Error(Errc::invalid_argument,
                      "parameter " + name + " is of rank " + std::to_string(shape[is_a ? 0 : 1]) +
                          ", but the configuration of which the names were made says " +
                          std::to_string(lora.rank));
        }
        auto& adapter = adapters_[name.substr(0, name.rfind(".lora_")) + ".weight"];
        auto& values = is_a ? adapter.a : adapter.b;
        values.resize(shape.size());
        trainer.read_parameter(name, values);  // of which the state may have a part
      }
    }
  }

  /// What is to be saved of the parameter \p name, whose values are \p weight [out, in]: W + scale
  /// B A beside an adapter, else the weight itself. Lives until the next call, and as long as the
  /// weight.
  [[nodiscard]] HostSpan<float const> operator()(std::string const& name,
                                                 HostSpan<float const> weight,
                                                 WorkerPool& pool) {
    auto const found = adapters_.find(name);
    if (found == adapters_.end()) {
      return weight;
    }
    auto const& [a, b] = found->second;
    auto const rank = static_cast<std::size_t>(lora_.rank);
    auto const in = a.size() / rank;
    merged_.assign(weight.begin(), weight.end());
    pool.for_each_part(b.size() / rank, 16, [&](std::size_t begin, std::size_t end) {
      std::vector<float> sum(in);
      for (auto row = begin; row < end; ++row) {
        std::fill(sum.begin(), sum.end(), 0.0F);
        for (std::size_t k = 0; k < rank; ++k) {
          auto const factor = b[row * rank + k];
          auto const* const from = a.data() + k * in;
          for (std::size_t i = 0; i < in; ++i) {
            sum[i] += factor * from[i];
          }
        }
        auto* const to = merged_.data() + row * in;
        for (std::size_t i = 0; i < in; ++i) {
          to[i] += static_cast<float>(lora_.scale()) * sum[i];
        }
      }
    });
    return merged_;
  }

 private:
  struct Adapter {
    std::vector<float> a;  // [rank, in]
    std::vector<float> b;  // [out, rank]
  };

  nn::LoraConfig lora_;
  std::unordered_map<std::string, Adapter> adapters_;  // by the weight's name
  std::vector<float> merged_;
};

}  // namespace roundpipe
