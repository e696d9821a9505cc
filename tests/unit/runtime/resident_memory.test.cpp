// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Compares the ledger with the memory that the system reports for the process.

#include <roundpipe/optim/adamw.hpp>
#include <roundpipe/runtime/pipeline.hpp>
#include <support/pipeline_runs.hpp>
#include <support/resident_bytes.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>

#include <cstddef>

namespace resident_memory_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a pipeline takes the memory that its ledger lists, in every mode" *
          doctest::skip(has_shadow_memory)) {
  struct Mode {
    EventProtocolOptions protocol{};
    StateType type = StateType::fp32;
  };
  ToyModelOptions const model{.types = {.width = 1024, .parameter = DType::bf16}, .dense = 8};
  for (auto const& mode : {Mode{{.master_copies = 2}},
                           Mode{{.master_copies = 1}},
                           Mode{{.staleness = 0}, StateType::declared},
                           Mode{{.master_copies = 2}, StateType::declared}}) {
    PipelineOptions options;
    options.state_type = mode.type;
    options.optimizer_threads = 1;
    HostBackend backend{host_devices(1)};
    auto const before = resident_bytes();
    Pipeline pipeline{toy_model(model),
                      AdamW{},
                      backend,
                      options,
                      Policies{.protocol = LayerEventProtocol(mode.protocol)}};
    auto const taken = resident_bytes() - before;
    auto const& ledger = pipeline.plan().ledger;
    auto const planned = total_bytes(ledger, LedgerLine::Space::host) +
                         total_bytes(ledger, LedgerLine::Space::device);  // emulated: here, too
    CAPTURE(pipeline.plan().host.state_bytes);
    CAPTURE(taken);
    CAPTURE(planned);
    REQUIRE(before > 0);
    constexpr Bytes code_and_stacks = 2_MiB;
    CHECK(taken > planned - planned / 100 - code_and_stacks);
    CHECK(taken < planned + planned / 100 + code_and_stacks);
  }
}

}  // namespace resident_memory_test
