// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/io/atomic_file.hpp>
#include <roundpipe/io/carried_files.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace roundpipe {

namespace detail {

/// Whether a file called \p name holds weights, or says where weights lie.
[[nodiscard]] ROUNDPIPE_INLINE bool names_weights(std::string_view name) {
  constexpr std::array<std::string_view, 12> endings{".safetensors",
                                                     ".index.json",
                                                     ".pt",
                                                     ".pth",
                                                     ".ckpt",
                                                     ".gguf",
                                                     ".h5",
                                                     ".msgpack",
                                                     ".onnx",
                                                     ".onnx_data",
                                                     ".ot",
                                                     ".partial"};
  bool const is_pytorch =
      (name.starts_with("pytorch_model") || name.starts_with("adapter_model")) &&
      name.ends_with(".bin");
  return is_pytorch || std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
           return name.ends_with(ending);
         });
}

}  // namespace detail

ROUNDPIPE_INLINE std::vector<std::string> files_beside_weights(
    std::filesystem::path const& folder) {
  std::vector<std::string> names;
  std::error_code code;
  std::filesystem::directory_iterator entry(folder, code);
  for (; !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
    auto const name = entry->path().filename().string();
    std::error_code ignored;  // a link that leads nowhere is no file
    if (!name.starts_with('.') && !detail::names_weights(name) && entry->is_regular_file(ignored)) {
      names.push_back(name);
    }
  }
  if (code) {
    throw file_error("read the folder", folder, code.value());
  }
  std::sort(names.begin(), names.end());
  return names;
}

ROUNDPIPE_INLINE void copy_files(std::filesystem::path const& from,
                                 std::filesystem::path const& to,
                                 std::span<std::string const> names) {
  std::vector<std::byte> buffer(1_MiB);
  for (auto const& name : names) {
    auto const target = to / name;
    std::error_code ignored;
    if (std::filesystem::exists(target, ignored)) {
      continue;
    }
    auto const source = File::open(from / name);
    auto const size = source.size();
    AtomicFile copy(target);
    for (Bytes done = 0; done < size; done += buffer.size()) {
      auto const part = std::span(buffer).first(std::min(buffer.size(), size - done));
      source.read_at(done, part);
      copy.file().write_at(done, part);
    }
    copy.commit();
  }
}

}  // namespace roundpipe
