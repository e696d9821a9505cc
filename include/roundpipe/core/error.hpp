// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The exception that the library throws, and its typed codes.

#include <roundpipe/config.hpp>

#include <source_location>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace roundpipe {

/// What went wrong, as a code that a program can handle.
enum class Errc {
  invalid_argument = 1,  ///< An argument or option is out of its domain.
  boundary_mismatch,     ///< A layer's boundary does not match the input of the next layer.
  over_budget,           ///< A plan needs more bytes than its budget.
  not_finite,            ///< A loss or a gradient norm is NaN or infinite.
  device_fault,          ///< Work on a device failed.
  aborted,               ///< Another failure stopped this work.
  unsupported,           ///< The combination is legal, but this version does not run it.
  unsafe_graph,          ///< A schedule, transfer policy or protocol leaves out a needed wait.
  bad_file,              ///< The content of a file is not as its format wants.
};

}  // namespace roundpipe

template <>
struct std::is_error_code_enum<roundpipe::Errc> : std::true_type {};

namespace roundpipe {

namespace detail {

class ErrorCategory final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "roundpipe"; }
  [[nodiscard]] std::string message(int code) const override;
  [[nodiscard]] std::error_condition default_error_condition(int code) const noexcept override;
};

}  // namespace detail

/// The category of codes made from \ref Errc.
std::error_category const& category() noexcept;

std::error_code make_error_code(Errc code) noexcept;

/// A failure: its code, a message for the user, and the place of the call that detected it.
class Error : public std::system_error {
 public:
  Error(std::error_code code,
        std::string message,
        std::source_location where = std::source_location::current())
      : std::system_error(code, message), message_(std::move(message)), where_(where) {}

  Error(Errc code,
        std::string message,
        std::source_location where = std::source_location::current())
      : Error(make_error_code(code), std::move(message), where) {}

  /// The message alone, without the description of the code that \c what() appends.
  [[nodiscard]] std::string const& message() const noexcept { return message_; }

  /// The source location that detected the failure.
  [[nodiscard]] std::source_location const& where() const noexcept { return where_; }

 private:
  std::string message_;
  std::source_location where_;
};

/// Throws \ref Error with \p code and \p message when \p holds is false.
constexpr void require(bool holds,
                       Errc code,
                       char const* message,
                       std::source_location where = std::source_location::current()) {
  if (!holds) [[unlikely]] {
    throw Error(code, message, where);
  }
}

/// In a catch block: the exception under way as an \ref Error whose message begins with \p where.
/// An Error keeps its code and place, anything else becomes \p code_of_others.
[[nodiscard]] Error current_error(std::string const& where,
                                  Errc code_of_others = Errc::device_fault);

/// The error of an answer that breaks a numbered rule of its concept.
/// \param answer Who answered what: "TransferPolicy::chunks".
/// \param value What is wrong, with its value: "chunk 2 is for window 4 of 4".
[[nodiscard]] Error broken_rule(std::string const& answer,
                                int rule,
                                std::string const& value,
                                std::error_code code = make_error_code(Errc::invalid_argument),
                                std::source_location where = std::source_location::current());

}  // namespace roundpipe

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/core/impl/error.ipp>
#endif
