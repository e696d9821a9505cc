// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/concepts/backend.hpp>
#include <roundpipe/concepts/partition_policy.hpp>
#include <roundpipe/core/digest.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/model/cost_model.hpp>
#include <roundpipe/model/model_description.hpp>
#include <roundpipe/runtime/probe/cost_file.hpp>
#include <roundpipe/version.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <vector>

namespace roundpipe {

namespace detail {

/// Costs by \ref cost_key.
using KeptCosts = std::map<std::string, std::vector<LayerCost>>;

inline constexpr std::string_view cost_file_title = "roundpipe costs 1";
inline constexpr std::string_view cost_file_legend =
    "# layers: how many equal ones; seconds of their forward, backward, and recomputation from "
    "each "
    "save level";

[[noreturn]] ROUNDPIPE_INLINE void fail_on(std::string const& path, std::string const& what) {
  throw Error(std::make_error_code(std::errc::io_error),
              "the file of costs " + path + " cannot be " + what);
}

/// A number that \ref reads reads as the same one; of doubles the shortest such.
template <class T, class... Base>
[[nodiscard]] std::string number_text(T number, Base... base) {
  std::array<char, 32> text{};
  auto const end = std::to_chars(text.data(), text.data() + text.size(), number, base...).ptr;
  return {text.data(), end};
}

/// Whether all of \p text is a number, which is written to \p number.
template <class T>
[[nodiscard]] bool reads(std::string_view text, T& number) {
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  return status == std::errc{} && end == text.data() + text.size();
}

/// Reads "layers COUNT SECONDS SECONDS..." and adds the layers to \p costs. \returns whether \p
/// line says that.
[[nodiscard]] ROUNDPIPE_INLINE bool read_layers(std::string const& line,
                                                std::vector<LayerCost>& costs) {
  constexpr std::size_t most_layers = 1'000'000;
  std::istringstream words(line);
  std::string word;
  std::size_t count = 0;
  if (!(words >> word) || word != "layers" || !(words >> word) || !reads(word, count) ||
      count == 0 || count > most_layers) {
    return false;
  }
  std::vector<double> seconds;
  while (words >> word) {
    if (!reads(word, seconds.emplace_back()) || !std::isfinite(seconds.back()) ||
        seconds.back() < 0) {
      return false;
    }
  }
  if (seconds.size() < 2) {
    return false;
  }
  LayerCost cost{seconds[0], seconds[1]};
  cost.replay_s.assign(seconds.begin() + 2, seconds.end());
  costs.insert(costs.end(), count, cost);
  return true;
}

/// \throws Error as \ref find_costs.
[[nodiscard]] ROUNDPIPE_INLINE KeptCosts read_costs(std::string const& path) {
  std::ifstream file(path);
  if (!file) {
    if (errno == ENOENT) {
      return {};
    }
    fail_on(path, "read");
  }
  auto const require = [&](bool good, std::string const& fault) {
    if (!good) {
      throw Error(Errc::invalid_argument, path + " " + fault);
    }
  };
  std::string line;
  require(std::getline(file, line) && line == cost_file_title,
          "is no file of costs of this version of roundpipe; its first line is not '" +
              std::string(cost_file_title) + "'");
  KeptCosts kept;
  std::vector<LayerCost>* layers = nullptr;
  for (std::size_t number = 2; std::getline(file, line); ++number) {
    require(!file.eof(), "is damaged: its last line is cut off");
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (line.rfind("costs ", 0) == 0) {
      layers = &kept[line];
    } else {
      require(layers != nullptr && read_layers(line, *layers),
              "is damaged: line " + std::to_string(number) + " is '" + line + "'");
    }
  }
  return kept;
}

[[nodiscard]] ROUNDPIPE_INLINE std::string costs_text(KeptCosts const& kept) {
  auto text = std::string(cost_file_title) + '\n' + std::string(cost_file_legend) + '\n';
  auto const equal = [](LayerCost const& a, LayerCost const& b) {
    return a.forward_s == b.forward_s && a.backward_s == b.backward_s && a.replay_s == b.replay_s;
  };
  for (auto const& [key, layers] : kept) {
    text += '\n' + key + '\n';
    for (auto next = layers.begin(); next != layers.end();) {
      auto const first = next;
      next = std::find_if(
          first, layers.end(), [&](LayerCost const& cost) { return !equal(cost, *first); });
      text += "layers " + std::to_string(next - first) + ' ' + number_text(first->forward_s) + ' ' +
              number_text(first->backward_s);
      for (auto const replay_s : first->replay_s) {
        text += ' ' + number_text(replay_s);
      }
      text += '\n';
    }
  }
  return text;
}

/// Writes \p text to a file of its own beside \p path, and renames that.
ROUNDPIPE_INLINE void replace_file(std::string const& path, std::string_view text) {
  std::string beside;
  int file = -1;
  for (std::size_t n = 0; file < 0; ++n) {
    beside = path + '.' + std::to_string(n) + ".partial";
    file = ::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) {
      fail_on(path, "written");
    }
  }
  while (!text.empty()) {
    auto const written = ::write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      break;
    }
    text.remove_prefix(static_cast<std::size_t>(std::max<::ssize_t>(written, 0)));
  }
  bool const closed = ::close(file) == 0;
  if (!text.empty() || !closed || std::rename(beside.c_str(), path.c_str()) != 0) {
    ::unlink(beside.c_str());
    fail_on(path, "written");
  }
}

}  // namespace detail

ROUNDPIPE_INLINE std::string cost_key(ModelDescription const& model,
                                      DeviceProperties const& device,
                                      std::size_t devices) {
  std::string facts;
  auto const add = [&](auto number) { facts += ' ' + detail::number_text(number); };
  for (auto const& layer : model.layers) {
    facts += '\n' + layer.name;
    for (auto const& parameter : layer.parameters) {
      facts += '\n' + to_string(TensorTable{parameter.tensor});
      add(parameter.frozen ? 1 : 0);
    }
    for (auto const* table : {&layer.input, &layer.boundary, &layer.side_inputs, &layer.results}) {
      facts += '\n' + to_string(*table);
    }
    add(layer.footprint.saved_bytes);
    add(layer.footprint.workspace_bytes);
    std::for_each(layer.save_levels.begin(), layer.save_levels.end(), add);
    add(layer.work.forward_flops);
    add(layer.work.backward_flops);
    std::for_each(layer.work.replay_flops.begin(), layer.work.replay_flops.end(), add);
  }
  Digest digest;
  digest.add(std::as_bytes(std::span(facts)));
  return "costs of model " + detail::number_text(digest.value(), 16) + ", " +
         std::to_string(model.size()) + " layers, at " + std::to_string(model.capacity.rows) +
         " x " + std::to_string(model.capacity.length) + " on " + std::to_string(devices) + " x " +
         device.name + ", roundpipe " + std::to_string(ROUNDPIPE_VERSION_MAJOR) + '.' +
         std::to_string(ROUNDPIPE_VERSION_MINOR) + '.' + std::to_string(ROUNDPIPE_VERSION_PATCH);
}

ROUNDPIPE_INLINE std::optional<CostModel> find_costs(std::string const& path,
                                                     ModelDescription const& model,
                                                     DeviceProperties const& device,
                                                     std::size_t devices) {
  auto const kept = detail::read_costs(path);
  auto const found = kept.find(cost_key(model, device, devices));
  if (found == kept.end()) {
    return std::nullopt;
  }
  if (found->second.size() != model.size()) {
    throw Error(Errc::invalid_argument,
                path + " is damaged: it has " + std::to_string(found->second.size()) +
                    " layers under '" + found->first + "'");
  }
  return CostModel(found->second);
}

ROUNDPIPE_INLINE void keep_costs(std::string const& path,
                                 ModelDescription const& model,
                                 DeviceProperties const& device,
                                 std::size_t devices,
                                 CostModel const& costs) {
  auto kept = detail::read_costs(path);
  kept[cost_key(model, device, devices)] = costs.layers();
  detail::replace_file(path, detail::costs_text(kept));
}

}  // namespace roundpipe
