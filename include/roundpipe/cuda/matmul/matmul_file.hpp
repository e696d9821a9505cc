// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The text file that carries chosen matmul algorithms from one process to the next. Needs
/// no device.

#include <roundpipe/core/error.hpp>
#include <roundpipe/cuda/matmul/matmul_plan.hpp>

#include <cublasLt.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace roundpipe::cu {

/// One algorithm that was chosen.
struct MatmulChoice {
  std::size_t device = 0;  ///< Its kind's place in \ref MatmulFile::devices.
  MatmulProblem problem;
  MatmulAlgorithm algorithm{};
};

/// What a file of algorithms says. Choices hold for one version of cuBLASLt: this program's.
struct MatmulFile {
  std::vector<std::string> devices;  ///< Kinds of devices, in words.
  std::vector<MatmulChoice> choices;
};

namespace detail {

inline constexpr std::string_view matmul_file_title = "roundpipe matmul algorithms 1";

[[nodiscard]] inline std::string to_hex(::cublasLtMatmulAlgo_t const& algorithm) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (std::uint64_t const word : algorithm.data) {
    for (int shift = 60; shift >= 0; shift -= 4) {
      text += digits[(word >> shift) & 15U];
    }
  }
  return text;
}

/// Whether \p text is what \ref to_hex makes of an algorithm, which is written to \p algorithm.
[[nodiscard]] inline bool from_hex(std::string_view text, ::cublasLtMatmulAlgo_t& algorithm) {
  bool good = text.size() == 16 * std::size(algorithm.data);
  for (std::size_t i = 0; good && i < std::size(algorithm.data); ++i) {
    auto const* const first = text.data() + 16 * i;
    auto const [end, status] = std::from_chars(first, first + 16, algorithm.data[i], 16);
    good = status == std::errc{} && end == first + 16;
  }
  return good;
}

}  // namespace detail

/// Writes \p content to \p path. \throws Error (std::errc::io_error) when it cannot be written.
inline void write_matmul_file(std::filesystem::path const& path, MatmulFile const& content) {
  std::ofstream file(path);
  file << detail::matmul_file_title << "\ncublaslt " << ::cublasLtGetVersion() << '\n';
  for (auto const& device : content.devices) {
    file << "device " << device << '\n';
  }
  for (auto const& choice : content.choices) {
    file << "algorithm " << choice.device << ' ';
    write(file, choice.problem);
    file << ' ' << detail::to_hex(choice.algorithm) << '\n';
  }
  file.flush();
  if (!file) {
    throw Error(std::make_error_code(std::errc::io_error),
                "the choice of matmul algorithms cannot be written to " + path.string());
  }
}

/// What \ref write_matmul_file wrote to \p path. Each choice names a device of the file.
/// \throws Error (std::errc::no_such_file_or_directory) when it cannot be read, (unsupported) when
///         another version of cuBLASLt made it, (invalid_argument) when it is no such file.
[[nodiscard]] inline MatmulFile read_matmul_file(std::filesystem::path const& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error(std::make_error_code(std::errc::no_such_file_or_directory),
                "the choice of matmul algorithms cannot be read from " + path.string());
  }
  auto const require = [&](bool good, std::string const& fault) {
    if (!good) {
      throw Error(Errc::invalid_argument, path.string() + ' ' + fault);
    }
  };
  std::string line;
  require(std::getline(file, line) && line == detail::matmul_file_title,
          "is no file of matmul algorithms of this version of roundpipe");
  std::getline(file, line);
  std::istringstream second(line);
  std::string word;
  std::size_t version = 0;
  require(second >> word >> version && word == "cublaslt", "has no line 'cublaslt'");
  if (version != ::cublasLtGetVersion()) {
    throw Error(Errc::unsupported,
                path.string() + " was made with cuBLASLt " + std::to_string(version) +
                    ", and this is " + std::to_string(::cublasLtGetVersion()) + ": measure again");
  }
  MatmulFile content;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    words >> word >> std::ws;
    if (line.empty()) {
      continue;
    }
    if (word == "device") {
      std::string device;
      std::getline(words, device);
      content.devices.push_back(std::move(device));
    } else {
      require(word == "algorithm", "has the line '" + line + "'");
      MatmulChoice choice;
      std::string hex;
      require(words >> choice.device && choice.device < content.devices.size() &&
                  read(words, choice.problem) && words >> hex,
              "has a broken line of an algorithm");
      require(detail::from_hex(hex, choice.algorithm), "has a broken algorithm");
      content.choices.push_back(choice);
    }
  }
  return content;
}

}  // namespace roundpipe::cu
