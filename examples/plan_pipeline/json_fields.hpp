// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads JSON files in which every key must be known, with errors of one line.

#include <roundpipe/core/error.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace plan_pipeline {

/// The contents of a file. \throws roundpipe::Error that names the file: (with the system's code)
/// if it cannot be read; (invalid_argument) if it is not JSON.
[[nodiscard]] inline nlohmann::json read_json(std::filesystem::path const& path) {
  using roundpipe::Errc;
  using roundpipe::Error;
  auto const where = path.string();
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(std::make_error_code(std::errc::is_a_directory), "cannot read '" + where + "'");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw Error(std::error_code(errno != 0 ? errno : EIO, std::generic_category()),
                "cannot read '" + where + "'");
  }
  try {
    return nlohmann::json::parse(file);
  } catch (nlohmann::json::exception const& error) {
    std::string const text = error.what();  // "[json.exception.parse_error.101] parse error at ..."
    throw Error(Errc::invalid_argument, where + ": " + text.substr(text.find("] ") + 2));
  }
}

/// The members of one object of the file; members that no one reads are errors.
class JsonFields {
 public:
  /// \param where How errors name the object: its file, and its key if it is inside another object.
  JsonFields(nlohmann::json const& object,
             std::string where,
             std::initializer_list<std::string_view> known)
      : object_(object), where_(std::move(where)) {
    if (!object.is_object()) {
      fail("is not a JSON object");
    }
    for (auto const& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        fail("has a key " + nlohmann::json(key).dump() + ", which is unknown here");
      }
    }
  }

  [[nodiscard]] bool has(char const* key) const { return object_.contains(key); }

  [[nodiscard]] nlohmann::json const& at(char const* key) const {
    auto const found = object_.find(key);
    if (found == object_.end()) {
      fail("has no '" + std::string(key) + "'");
    }
    return *found;
  }

  [[nodiscard]] std::string text(char const* key) const {
    auto const& value = at(key);
    if (!value.is_string() || value.get_ref<std::string const&>().empty()) {
      fail("'" + std::string(key) + "' must be a string");
    }
    return value.get<std::string>();
  }

  /// A number above 0 (with \p or_zero, from 0 on), up to 1e9, which no unit makes absurd.
  [[nodiscard]] double number(char const* key, bool or_zero = false) const {
    return number_up_to(key, or_zero, 1e9, "1e9");
  }

  /// A number from 0 on, up to 1e15.
  [[nodiscard]] double bytes(char const* key) const {
    return number_up_to(key, true, 1e15, "1e15");
  }

  /// The number, from 0 on, or \p otherwise if the key is missing.
  [[nodiscard]] double number_or(char const* key, double otherwise) const {
    return has(key) ? number(key, true) : otherwise;
  }

  /// A list of at least one element.
  [[nodiscard]] nlohmann::json const& list(char const* key) const {
    auto const& value = at(key);
    if (!value.is_array() || value.empty()) {
      fail("'" + std::string(key) + "' must be a list of at least one element");
    }
    return value;
  }

  /// \throws roundpipe::Error (invalid_argument) with the object's name and \p what.
  [[noreturn]] void fail(std::string const& what) const {
    throw roundpipe::Error(roundpipe::Errc::invalid_argument, where_ + ": " + what);
  }

 private:
  [[nodiscard]] double number_up_to(char const* key,
                                    bool or_zero,
                                    double most,
                                    char const* name_of_most) const {
    auto const& value = at(key);
    auto const n = value.is_number() ? value.get<double>() : -1;
    if (!((or_zero ? n >= 0 : n > 0) && n <= most)) {
      fail("'" + std::string(key) + "' is " +
           (value.is_number() ? value.dump() : std::string("a JSON ") + value.type_name()) +
           ", but must be a number " + (or_zero ? "from 0" : "above 0") + " up to " + name_of_most);
    }
    return n;
  }

  nlohmann::json const& object_;
  std::string where_;
};

}  // namespace plan_pipeline
