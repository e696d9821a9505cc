// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Reads the pictures that the library writes, strictly: throws if they are not well-formed.

#include <cctype>
#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace roundpipe::test {

struct SvgElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  ///< Directly in the element.

  [[nodiscard]] double number(std::string const& attribute) const {
    return std::stod(attributes.at(attribute));
  }
};

/// Elements and attributes of XML, without declarations, comments and processing instructions.
class SvgReader {
 public:
  explicit SvgReader(std::string_view text) : rest_(text) {
    read_element();
    skip_space();
    require(rest_.empty());
  }

  /// In the order in which they begin; the first contains the others.
  std::vector<SvgElement> elements;

  [[nodiscard]] std::vector<SvgElement> named(std::string_view name) const {
    std::vector<SvgElement> found;
    for (auto const& element : elements) {
      if (element.name == name) {
        found.push_back(element);
      }
    }
    return found;
  }

 private:
  static void require(bool holds) {
    if (!holds) {
      throw std::runtime_error("a picture is not well-formed");
    }
  }

  char take() {
    require(!rest_.empty());
    char const c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  void take(std::string_view expected) {
    require(rest_.starts_with(expected));
    rest_.remove_prefix(expected.size());
  }
  void skip_space() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
      take();
    }
  }

  std::string read_name() {
    std::string name;
    while (!rest_.empty() && (std::isalnum(static_cast<unsigned char>(rest_.front())) != 0 ||
                              rest_.front() == '-' || rest_.front() == ':')) {
      name += take();
    }
    require(!name.empty());
    return name;
  }

  /// Reads up to \p end, without it.
  std::string read_text(char end) {
    std::map<std::string, char> const entities{
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    std::string text;
    while (require(!rest_.empty()), rest_.front() != end) {
      char const c = take();
      require(c != '<' && (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t'));
      if (c == '&') {
        auto const name = read_name();
        take(";");
        require(entities.contains(name));
        text += entities.at(name);
      } else {
        text += c;
      }
    }
    return text;
  }

  void read_element() {
    take("<");
    auto const at = elements.size();
    elements.push_back({read_name(), {}, {}});
    for (skip_space(); !rest_.starts_with(">") && !rest_.starts_with("/>"); skip_space()) {
      auto const attribute = read_name();
      take("=\"");
      require(elements[at].attributes.try_emplace(attribute, read_text('"')).second);
      take("\"");
    }
    if (rest_.starts_with("/>")) {
      take("/>");
      return;
    }
    take(">");
    while (true) {
      elements[at].text += read_text('<');
      if (rest_.starts_with("</")) {
        take("</" + elements[at].name + ">");
        return;
      }
      read_element();
    }
  }

  std::string_view rest_;
};

}  // namespace roundpipe::test
