// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The \c main of every test program: runs the tests, and fails a run of no test case.
/// Include it once in a program, with \c DOCTEST_CONFIG_IMPLEMENT defined.

#include <doctest/doctest.h>

#include <cstdio>
#include <vector>

namespace roundpipe::test {

/// Counts the test cases that ran: doctest itself accepts a run of none.
class Counter final : public doctest::IReporter {
 public:
  explicit Counter(doctest::ContextOptions const&) {}
  void report_query(doctest::QueryData const& query) override {
    if (query.run_stats != nullptr) {  // not for --help
      cases_found = query.run_stats->numTestCasesPassingFilters;
    }
  }
  void test_run_start() override {}
  void test_run_end(doctest::TestRunStats const& stats) override {
    cases_run = stats.numTestCasesPassingFilters;
  }
  void test_case_start(doctest::TestCaseData const&) override {}
  void test_case_reenter(doctest::TestCaseData const&) override {}
  void test_case_end(doctest::CurrentTestCaseStats const&) override {}
  void test_case_exception(doctest::TestCaseException const&) override {}
  void subcase_start(doctest::SubcaseSignature const&) override {}
  void subcase_end() override {}
  void log_assert(doctest::AssertData const&) override {}
  void log_message(doctest::MessageData const&) override {}
  void test_case_skipped(doctest::TestCaseData const&) override {}

  static inline unsigned cases_run = 0;
  static inline unsigned cases_found = 0;  ///< Of the query whose answer came last.
};

/// CTest's exit status for a skipped test.
inline constexpr int skipped = 77;

/// Runs doctest with the program's arguments. \returns the program's exit status: \ref skipped if
/// this kind of build can run none of the test cases that the arguments choose.
inline int run(int argc, char** argv) {
  doctest::registerReporter<Counter>("counter", 0, false);
  doctest::Context context(argc, argv);
  int const status = context.run();
  if (context.shouldExit()) {  // --help, --list-test-cases and the like
    return status;
  }
  if (Counter::cases_run > 0) {
    return status;
  }
  std::vector<char const*> query(argv, argv + argc);
  query.insert(query.end(), {"--count", "--no-skip"});
  doctest::Context(static_cast<int>(query.size()), query.data()).run();
  if (Counter::cases_found > 0) {
    return skipped;  // by doctest::skip
  }
  std::fputs("no test case was run\n", stderr);
  return 1;
}

}  // namespace roundpipe::test
