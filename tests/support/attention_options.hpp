// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Sets the process's attention options for a scope, for tests.

#include <roundpipe/cuda/attention/attention_plan.hpp>

namespace roundpipe::test {

/// Sets the process's options for a scope.
class ScopedAttentionOptions {
 public:
  explicit ScopedAttentionOptions(cu::AttentionOptions options) {
    cu::set_attention_options(options);
  }
  ScopedAttentionOptions(ScopedAttentionOptions const&) = delete;
  ScopedAttentionOptions& operator=(ScopedAttentionOptions const&) = delete;
  ~ScopedAttentionOptions() { cu::set_attention_options(former_); }

 private:
  cu::AttentionOptions const former_ = cu::attention_options();
};

}  // namespace roundpipe::test
