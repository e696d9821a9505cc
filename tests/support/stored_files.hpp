// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Files with any content, and safetensors files put together by hand.

#include <roundpipe/core/span.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace roundpipe::test {

inline HostSpan<std::byte const> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

inline std::string text_of(HostSpan<std::byte const> bytes) {
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}

/// The content of a file; empty if there is none.
inline std::string content_of(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::filesystem::path put_file(std::filesystem::path const& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  return path;
}

/// \p number as files hold it.
inline std::string little_endian(std::uint64_t number) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes;
}

/// A safetensors file with the header \p json, as it is, and \p data.
inline std::string safetensors_of(std::string_view json, std::string_view data = "") {
  return little_endian(json.size()).append(json).append(data);
}

/// A header of one tensor, whose fields are \p fields.
inline std::string header_of(std::string_view fields) {
  return std::string(R"({"w":{)").append(fields).append("}}");
}

}  // namespace roundpipe::test
