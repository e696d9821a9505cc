// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The fields of snapshot.json, read with checks.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/json.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace roundpipe::detail {

/// Some hundred bytes a parameter, and what the program adds.
inline constexpr JsonLimits manifest_limits{.bytes = 64_MiB, .depth = 64};

/// An object of the file. Every field that is asked for must be there. Errors (bad_file) name the
/// file and the field, with the objects around it: "parameters[3].name".
class ManifestFields {
 public:
  /// \param object must outlive this.
  /// \param path of the object in its file; empty for the file's own object.
  ManifestFields(nlohmann::json const& object, std::string file, std::string path = {})
      : object_(&object), file_(std::move(file)), path_(std::move(path)) {
    if (!object.is_object()) {
      throw bad("", std::string("must be an object, not ") + object.type_name());
    }
  }

  [[nodiscard]] nlohmann::json const& json() const noexcept { return *object_; }
  [[nodiscard]] bool has(std::string const& name) const { return object_->contains(name); }

  /// A whole number from 0 to \p most.
  [[nodiscard]] std::uint64_t whole(
      std::string const& name,
      std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) const {
    auto const& value = need(name);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
      throw bad(name, "must be a whole number from 0 to " + std::to_string(most));
    }
    return value.get<std::uint64_t>();
  }
  [[nodiscard]] double number(std::string const& name) const {
    auto const& value = need(name);
    if (!value.is_number() || !std::isfinite(value.get<double>())) {
      throw bad(name, "must be a number");
    }
    return value.get<double>();
  }
  [[nodiscard]] bool flag(std::string const& name) const { return flag(need(name), name); }
  [[nodiscard]] std::string text(std::string const& name) const {
    auto const& value = need(name);
    if (!value.is_string()) {
      throw bad(name, "must be a string");
    }
    return value.get<std::string>();
  }
  [[nodiscard]] ManifestFields object(std::string const& name) const {
    return {need(name), file_, path_of(name)};
  }
  [[nodiscard]] std::optional<ManifestFields> object_or_null(std::string const& name) const {
    return need(name).is_null() ? std::nullopt : std::optional(object(name));
  }
  [[nodiscard]] nlohmann::json const& list(std::string const& name) const {
    auto const& value = need(name);
    if (!value.is_array()) {
      throw bad(name, "must be a list");
    }
    return value;
  }

  /// Element \p i of the list \p name.
  [[nodiscard]] bool flag_in(std::string const& name, std::size_t i) const {
    return flag(list(name)[i], place_of(name, i));
  }
  [[nodiscard]] std::int64_t extent_in(std::string const& name, std::size_t i) const {
    auto const& value = list(name)[i];
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
      throw bad(place_of(name, i), "must be an extent");
    }
    return value.get<std::int64_t>();
  }
  [[nodiscard]] ManifestFields object_in(std::string const& name, std::size_t i) const {
    return {list(name)[i], file_, path_of(place_of(name, i))};
  }

  [[nodiscard]] nlohmann::json const& need(std::string const& name) const {
    auto const found = object_->find(name);
    if (found == object_->end()) {
      throw bad(name, "is missing");
    }
    return *found;
  }

  /// The error (bad_file) of the field \p name, or of the object itself.
  [[nodiscard]] Error bad(std::string const& name, std::string const& fault) const {
    auto const place = path_of(name);
    return bad_file(file_, place.empty() ? "the text" : printable(place.substr(0, 200)), fault);
  }

 private:
  [[nodiscard]] bool flag(nlohmann::json const& value, std::string const& name) const {
    if (!value.is_boolean()) {
      throw bad(name, "must be true or false");
    }
    return value.get<bool>();
  }
  [[nodiscard]] static std::string place_of(std::string const& name, std::size_t i) {
    return name + '[' + std::to_string(i) + ']';
  }
  [[nodiscard]] std::string path_of(std::string const& name) const {
    return path_.empty() || name.empty() ? path_ + name : path_ + '.' + name;
  }

  nlohmann::json const* object_;
  std::string file_;
  std::string path_;
};

}  // namespace roundpipe::detail
