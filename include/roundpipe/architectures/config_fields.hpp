// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The fields of a model's config.json, read with checks. As in transformers, a field that
/// is null counts as absent.

#include <roundpipe/core/error.hpp>
#include <roundpipe/io/file_error.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe::architectures {

/// An object of a configuration. Errors name the file and the field, with the objects around it:
/// "rope_scaling.factor".
class ConfigFields {
 public:
  /// \param object must outlive this.
  /// \param path of the object in its file; empty for the file's own object.
  /// \throws Error (bad_file) when \p object is no JSON object.
  ConfigFields(nlohmann::json const& object, std::string file, std::string path = {})
      : object_(&object), file_(std::move(file)), path_(std::move(path)) {
    if (!object.is_object()) {
      throw bad_file(file_, path_.empty() ? "the text" : path_, "is no object");
    }
  }

  [[nodiscard]] std::string const& file() const noexcept { return file_; }
  [[nodiscard]] nlohmann::json const& json() const noexcept { return *object_; }
  [[nodiscard]] bool has(std::string const& name) const { return find(name) != nullptr; }

  /// Whether the field is there, and null.
  [[nodiscard]] bool is_null(std::string const& name) const {
    return object_->contains(name) && !has(name);
  }

  /// A size: a whole number from 1 to 2^31 - 1.
  /// \throws Error (bad_file) for other values, and when there is no such field.
  [[nodiscard]] std::int64_t size(std::string const& name) const { return whole(name, 1); }
  [[nodiscard]] std::int64_t size(std::string const& name, std::int64_t fallback) const {
    return has(name) ? size(name) : fallback;
  }
  /// The same, but 0 is allowed, too.
  [[nodiscard]] std::int64_t count(std::string const& name, std::int64_t fallback) const {
    return has(name) ? whole(name, 0) : fallback;
  }
  /// A finite number. \throws Error (bad_file) likewise.
  [[nodiscard]] double number(std::string const& name) const {
    auto const& value = need(name);
    auto const number = value.is_number() ? value.get<double>() : HUGE_VAL;
    if (!std::isfinite(number)) {
      throw bad(name, "is " + text_of(value) + ", but must be a number");
    }
    return number;
  }
  [[nodiscard]] double number(std::string const& name, double fallback) const {
    return has(name) ? number(name) : fallback;
  }
  [[nodiscard]] bool flag(std::string const& name, bool fallback) const {
    auto const* const value = find(name);
    if (value != nullptr && !value->is_boolean()) {
      throw bad(name, "is " + text_of(*value) + ", but must be true or false");
    }
    return value == nullptr ? fallback : value->get<bool>();
  }
  [[nodiscard]] std::string text(std::string const& name, std::string const& fallback) const {
    auto const* const value = find(name);
    if (value != nullptr && !value->is_string()) {
      throw bad(name, "is " + text_of(*value) + ", but must be a string");
    }
    return value == nullptr ? fallback : value->get<std::string>();
  }
  [[nodiscard]] std::optional<ConfigFields> object(std::string const& name) const {
    auto const* const value = find(name);
    return value == nullptr ? std::nullopt
                            : std::optional(ConfigFields(*value, file_, path_of(name)));
  }
  /// The elements of a list. \throws Error (bad_file) when the field is no list of strings.
  [[nodiscard]] std::optional<std::vector<std::string>> texts(std::string const& name) const {
    auto const* const value = find(name);
    if (value == nullptr) {
      return std::nullopt;
    }
    std::vector<std::string> list;
    for (auto const& element : value->is_array() ? *value : nlohmann::json::array({0})) {
      if (!element.is_string()) {
        throw bad(name, "is " + text_of(*value) + ", but must be a list of strings");
      }
      list.push_back(element.get<std::string>());
    }
    return list;
  }

  /// The error (bad_file) of a field that says nothing sensible.
  [[nodiscard]] Error bad(std::string const& name, std::string const& fault) const {
    return bad_file(file_, path_of(name), fault);
  }
  /// The error (unsupported) of a field that asks for what the library does not compute.
  /// \param instead what it computes, such as "silu".
  [[nodiscard]] Error unsupported(std::string const& name, std::string const& instead) const {
    auto const* const value = find(name);
    return {Errc::unsupported,
            in_quotes(file_) + ": " + path_of(name) + " is " +
                (value == nullptr ? "absent" : text_of(*value)) +
                ", which is not supported; supported is " + instead};
  }
  /// Refuses the fields \p names, whatever they say, unless they are absent or false.
  /// \throws Error (unsupported).
  void refuse(std::initializer_list<char const*> names) const {
    for (auto const* const name : names) {
      auto const* const value = find(name);
      if (value != nullptr && *value != false) {
        throw unsupported(name, "a configuration without it");
      }
    }
  }

 private:
  [[nodiscard]] std::int64_t whole(std::string const& name, std::int64_t least) const {
    auto const& value = need(name);
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    // An unsigned number beyond 2^63 becomes negative.
    auto const number = value.is_number_integer() ? value.get<std::int64_t>() : -1;
    if (number < least || number > most) {
      throw bad(name,
                "is " + text_of(value) + ", but must be a whole number from " +
                    std::to_string(least) + " to " + std::to_string(most));
    }
    return number;
  }
  [[nodiscard]] nlohmann::json const* find(std::string const& name) const {
    auto const found = object_->find(name);
    return found == object_->end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] nlohmann::json const& need(std::string const& name) const {
    auto const* const value = find(name);
    if (value == nullptr) {
      throw bad(name, "is missing");
    }
    return *value;
  }
  [[nodiscard]] std::string path_of(std::string const& name) const {
    return path_.empty() ? name : path_ + "." + name;
  }
  /// A value in a message: short, and without control characters.
  [[nodiscard]] static std::string text_of(nlohmann::json const& value) {
    auto const text =
        value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 60);
    auto const quoted = in_quotes(text);
    return quoted.substr(1, quoted.size() - 2);
  }

  nlohmann::json const* object_;
  std::string file_;
  std::string path_;
};

}  // namespace roundpipe::architectures
