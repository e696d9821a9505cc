// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <roundpipe/core/error.hpp>

#include <exception>
#include <source_location>
#include <string>
#include <system_error>

namespace roundpipe {

namespace detail {

ROUNDPIPE_INLINE std::string ErrorCategory::message(int code) const {
  switch (static_cast<Errc>(code)) {
    case Errc::invalid_argument:
      return "invalid argument";
    case Errc::boundary_mismatch:
      return "boundary mismatch";
    case Errc::over_budget:
      return "over budget";
    case Errc::not_finite:
      return "not finite";
    case Errc::device_fault:
      return "device fault";
    case Errc::aborted:
      return "aborted";
    case Errc::unsupported:
      return "unsupported";
    case Errc::unsafe_graph:
      return "unsafe graph";
    case Errc::bad_file:
      return "bad file";
  }
  return "unknown roundpipe error";
}

ROUNDPIPE_INLINE std::error_condition ErrorCategory::default_error_condition(
    int code) const noexcept {
  switch (static_cast<Errc>(code)) {
    case Errc::invalid_argument:
    case Errc::boundary_mismatch:
      return std::errc::invalid_argument;
    case Errc::over_budget:
      return std::errc::not_enough_memory;
    case Errc::aborted:
      return std::errc::operation_canceled;
    case Errc::unsupported:
      return std::errc::not_supported;
    default:
      return {code, *this};
  }
}

}  // namespace detail

ROUNDPIPE_INLINE std::error_category const& category() noexcept {
  static detail::ErrorCategory const instance;
  return instance;
}

ROUNDPIPE_INLINE std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), category()};
}

ROUNDPIPE_INLINE Error current_error(std::string const& where, Errc code_of_others) {
  try {
    throw;
  } catch (Error const& error) {
    return {error.code(), where + error.message(), error.where()};
  } catch (std::exception const& error) {
    return {code_of_others, where + error.what()};
  } catch (...) {
    return {code_of_others, where + "an exception that is not a std::exception"};
  }
}

ROUNDPIPE_INLINE Error broken_rule(std::string const& answer,
                                   int rule,
                                   std::string const& value,
                                   std::error_code code,
                                   std::source_location where) {
  return {code, answer + " breaks rule " + std::to_string(rule) + ": " + value, where};
}

}  // namespace roundpipe
