// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/backend/host_backend.hpp>
#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/memory/memory_plan.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <roundpipe/snapshots/snapshot.hpp>
#include <roundpipe/snapshots/snapshot_folders.hpp>
#include <roundpipe/snapshots/snapshot_writer.hpp>
#include <roundpipe/snapshots/state_copy.hpp>
#include <support/any_optimizer.hpp>
#include <support/error_of.hpp>
#include <support/pipeline_runs.hpp>
#include <support/property.hpp>
#include <support/rank_trainings.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>
#include <support/toy_model.hpp>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ranks_equal_serial_test {
namespace {

using namespace roundpipe;
using namespace roundpipe::test;

/// Calls \p f with each rank's group, each on a thread of its own, and returns what that throws. A
/// rank that throws ends the group.
std::vector<std::string> on_ranks(LoopbackNetwork& network,
                                  std::function<void(LoopbackGroup&)> const& f) {
  std::vector<std::string> errors(network.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < network.size(); ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup group(network, r);
      try {
        f(group);
      } catch (std::exception const& error) {
        errors[r] = error.what();
        group.abort(error.what());
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return errors;
}

/// A rank of a loopback that counts the bytes that come from others.
struct CountingGroup {
  explicit CountingGroup(LoopbackGroup& of) : group(of) {}

  [[nodiscard]] std::size_t rank() const { return group.rank(); }
  [[nodiscard]] std::size_t size() const { return group.size(); }
  void gather(GroupChannel channel, ConstHostBytes mine, HostBytes all) {
    received += all.size() - mine.size();
    group.gather(channel, mine, all);
  }
  void exchange(GroupChannel channel,
                std::span<ConstHostBytes const> mine,
                std::span<HostBytes const> theirs) {
    for (std::size_t r = 0; r < theirs.size(); ++r) {
      received += r == rank() ? 0 : theirs[r].size();
    }
    group.exchange(channel, mine, theirs);
  }
  void broadcast(GroupChannel channel, std::size_t root, HostBytes bytes) {
    received += root == rank() ? 0 : bytes.size();
    group.broadcast(channel, root, bytes);
  }
  void barrier(GroupChannel channel) { group.barrier(channel); }
  void abort(std::string const& reason) { group.abort(reason); }
  void rethrow() const { group.rethrow(); }

  LoopbackGroup& group;
  std::atomic<std::size_t> received{0};
};

/// The property: every rank trains as one process with the rounds of all ranks.
void check_equal(RankMix const& mix) {
  auto const expected = serial_outcome(mix);
  LoopbackNetwork network(
      mix.ranks,
      {.seed = mix.seed, .longest_delay = std::chrono::microseconds(mix.delays ? 400 : 0)});
  std::vector<RankOutcome> outcomes(mix.ranks);
  auto const errors = on_ranks(
      network, [&](LoopbackGroup& group) { outcomes[group.rank()] = rank_outcome(mix, group); });
  for (std::size_t r = 0; r < mix.ranks; ++r) {
    RC_ASSERT(errors[r] == "");
    RC_ASSERT(outcomes[r].losses == expected.losses);
    RC_ASSERT(outcomes[r].digests == expected.digests);
    RC_ASSERT(outcomes[r].skipped == expected.skipped);
  }
  RC_TAG(mix.ranks, mix.staleness == 0 ? "sync" : "staleness 1", mix.rounds > 1);
}

}  // namespace

TEST_CASE("ranks train as one process with all their rounds does, bit for bit") {
  auto params = rc::detail::configuration().testParams;
  auto const* const cases = std::getenv("ROUNDPIPE_TEST_CASES");
  params.maxSuccess = cases == nullptr ? 60 : std::atoi(cases);
  check_property([] { check_equal(any_rank_mix(any_number)); }, params);
}

namespace {

constexpr std::size_t rounds_of_all = 12;  // as 1, 2, 3 and 4 ranks can share them

/// On a rank's thread, which RapidCheck does not know.
void expect(bool holds, char const* what) {
  require(holds, Errc::invalid_argument, what);
}

/// The same training with \p ranks ranks.
RankMix with_ranks(RankMix mix, std::size_t ranks) {
  mix.ranks = ranks;
  mix.rounds = rounds_of_all / ranks;
  mix.shares = mix.shares && ranks > 1;
  mix.deals = false;
  return mix;
}

/// Calls `f(pipeline, group)` on each rank of a fresh training, with the rank's pipeline.
template <class F>
void on_pipelines(RankMix const& mix, F const& f) {
  LoopbackNetwork network(
      mix.ranks,
      {.seed = mix.seed, .longest_delay = std::chrono::microseconds(mix.delays ? 400 : 0)});
  auto const errors = on_ranks(network, [&](LoopbackGroup& loopback) {
    CountingGroup group(loopback);
    auto const options = rank_options(mix, group.rank());
    HostBackend backend(host_devices(options.devices));
    RankPipeline pipeline(
        rank_model(mix), AnyOptimizer(mix.adam), backend, options, rank_policies(mix, group));
    f(pipeline, group);
  });
  RC_ASSERT(errors == std::vector<std::string>(mix.ranks));
}

/// Trains steps [\p from, \p to). \returns the losses.
std::vector<double> train(RankPipeline& pipeline,
                          RankMix const& mix,
                          std::size_t from,
                          std::size_t to) {
  std::vector<double> losses;
  for (auto step = from; step < to; ++step) {
    for (std::size_t c = 0; c < mix.calls; ++c) {
      ToyData const data(
          mix.micro_batches_per_round * rounds_of_all, {2, 3}, mix.seed + 10 * step + c);
      losses.push_back(pipeline.forward_backward(data.batch()));
    }
    pipeline.step();
  }
  return losses;
}

SnapshotWriterOptions saving(AnyProcessGroup group, Bytes copy_memory) {
  SnapshotWriterOptions options;
  options.keep = 100;
  options.copy_memory = copy_memory;
  options.group = std::move(group);
  return options;
}

/// The files of tensors in \p folder, and what the manifest says but where a next call would begin,
/// which devices and rounds decide.
std::map<std::string, std::string> contents_of(std::filesystem::path const& folder) {
  std::map<std::string, std::string> contents;
  for (auto const& entry : std::filesystem::directory_iterator(folder)) {
    auto const name = entry.path().filename().string();
    if (entry.path().extension() == ".safetensors") {
      contents[name] = content_of(entry.path());
    } else if (name == "snapshot.json") {
      auto json = nlohmann::json::parse(content_of(entry.path()));
      json.at("position").erase("first_device");
      contents[name] = json.dump();
    }
  }
  return contents;
}

}  // namespace

TEST_CASE("ranks write the files of one process, byte for byte, and any number goes on from them") {
  auto params = rc::detail::configuration().testParams;
  auto const* const cases = std::getenv("ROUNDPIPE_TEST_CASES");
  params.maxSuccess = cases == nullptr ? 12 : std::atoi(cases);
  check_property(
      [] {
        auto mix = any_rank_mix(any_number);
        auto const ranks = any_number("saving ranks", 1, 4);
        auto const others = any_number("other ranks", 1, 4);
        mix.steps = 3;
        TemporaryFolder const folder;
        std::vector<double> losses;
        std::uint64_t digest = 0;
        on_pipelines(with_ranks(mix, 1), [&](RankPipeline& pipeline, CountingGroup& group) {
          SnapshotWriter writer(folder.path / "one", saving(group, 1_GiB));
          for (std::size_t step = 0; step < mix.steps; ++step) {
            auto const more = train(pipeline, mix, step, step + 1);
            losses.insert(losses.end(), more.begin(), more.end());
            writer.save(pipeline.state());
          }
          pipeline.synchronize();
          digest = weights_digest(pipeline);
        });
        auto const copies = mix.seed % 3;  // 1: some ranks do
        on_pipelines(with_ranks(mix, ranks), [&](RankPipeline& pipeline, CountingGroup& group) {
          auto const own_copies = copies == 1 ? group.rank() % 2 : copies / 2;
          SnapshotWriter writer(folder.path / "all", saving(group, own_copies * 1_GiB));
          for (std::size_t step = 0; step < mix.steps; ++step) {
            train(pipeline, mix, step, step + 1);  // while the one before is written
            auto const report = writer.save(pipeline.state());
            bool const copied = own_copies > 0 || report.state_bytes == 0;
            expect(report.mode == (copied ? SnapshotMode::copied : SnapshotMode::live),
                   "the mode is as wanted");
          }
          pipeline.synchronize();
          expect(weights_digest(pipeline) == digest, "saving changes no weights");
          writer.wait();
        });
        auto const places = list_snapshots(folder.path / "all");
        RC_ASSERT(places.size() == mix.steps);
        for (auto const& place : places) {
          RC_ASSERT(contents_of(place.path) ==
                    contents_of(snapshot_path(folder.path / "one", place.step)));
        }
        auto const& from = places[any_number("from", 0, places.size() - 1)];
        on_pipelines(with_ranks(mix, others), [&](RankPipeline& pipeline, CountingGroup& group) {
          pipeline.restore(Snapshot(from.path, group).state());
          auto const rest = train(pipeline, mix, from.step, mix.steps);
          expect(std::equal(rest.rbegin(), rest.rend(), losses.rbegin()), "losses go on");
          pipeline.synchronize();
          expect(weights_digest(pipeline) == digest, "weights go on");
        });
        RC_TAG(ranks, others, mix.shards ? "shards" : "whole states");
      },
      params);
}

TEST_CASE("a rank writes its share of a snapshot, and receives nothing of the others'") {
  RankMix mix{.calls = 1, .steps = 1, .dtype = DType::bf16, .adam = true};
  mix.layers = 2;
  mix.width = 256;
  for (bool const shards : {true, false}) {
    mix.shards = shards;
    for (std::size_t const ranks : {1, 2, 4}) {
      TemporaryFolder const folder;
      std::vector<Bytes> written(ranks);
      on_pipelines(with_ranks(mix, ranks), [&](RankPipeline& pipeline, CountingGroup& group) {
        SnapshotWriter writer(folder.path, saving(group, 1_GiB));
        train(pipeline, mix, 0, 1);
        auto const state = pipeline.state();
        group.barrier(GroupChannel::control);
        auto const before = group.received.load();
        auto const report = writer.save(state);
        writer.wait();
        CHECK(group.received - before < 10'000);
        written[group.rank()] = writer.last()->written_bytes;
        if (!shards && ranks > 1) {  // the copy is of the share, too
          CHECK(report.state_bytes < StateCopy::bytes_of(state) / ranks * 11 / 10);
        }
      });
      Bytes all = 0;
      for (auto const& entry : std::filesystem::directory_iterator(*newest_snapshot(folder.path))) {
        all += entry.file_size();
      }
      CHECK(std::accumulate(written.begin(), written.end(), Bytes{0}) == all);
      CHECK(all > 1_MiB);
      for (auto const bytes : written) {
        CHECK(static_cast<double>(bytes * ranks) ==
              doctest::Approx(static_cast<double>(all)).epsilon(0.05));
      }
    }
  }
}

TEST_CASE("a state of one of several ranks is refused by name where it is taken for all of it") {
  RankMix const mix{.ranks = 2, .rounds = 6};
  on_pipelines(mix, [](RankPipeline& pipeline, CountingGroup& group) {
    train(pipeline, RankMix{}, 0, 1);
    auto const state = pipeline.state();
    group.barrier(GroupChannel::control);
    CHECK(
        error_of([&] { pipeline.restore(state); }).message() ==
        "parameter 0.weight is in the state of one of 2 ranks, which has a part of it; a snapshot "
        "that all ranks write has all of it");
    TemporaryFolder const folder;
    SnapshotWriter alone(folder.path);
    CHECK(error_of([&] { alone.save(state); }).message() ==
          "the state is that of one of 2 ranks, but 1 writes the snapshot; "
          "SnapshotWriterOptions::group is the pipeline's group");
  });
}

TEST_CASE("a rank that fails ends the training of all, and names itself and the cause") {
  for (bool const shards : {false, true}) {
    RankMix const mix{.ranks = 3, .steps = 6, .shards = shards};
    LoopbackNetwork network(3, {.fault = LoopbackFault{.rank = 1, .operation = 9}});  // of any lane
    auto const errors = on_ranks(network, [&](LoopbackGroup& group) {
      HostBackend backend(host_devices(1 + group.rank()));
      RankPipeline pipeline(rank_model(mix),
                            AnyOptimizer(true),
                            backend,
                            rank_options(mix),
                            rank_policies(mix, group));
      try {
        (void)outcome_of(mix, pipeline, 0);
      } catch (Error const&) {
        try {
          pipeline.recover();
        } catch (Error const& error) {
          CHECK(error.code() == Errc::aborted);  // no rank can go on alone
          CHECK(error.message().find("rank 1 has ended the group: ") == 0);
        }
        throw;
      }
    });
    CHECK(errors[1].find("operation 9 of rank 1 fails") != std::string::npos);
    for (auto const r : {0, 2}) {
      CHECK(errors[static_cast<std::size_t>(r)].find("rank 1 has ended the group") !=
            std::string::npos);
    }
  }
}

TEST_CASE("a rank receives and holds no more than its share") {
  RankMix mix{.calls = 1, .steps = 4, .dtype = DType::bf16, .clips = true, .adam = true};
  mix.layers = 3;
  mix.width = 256;
  for (std::size_t const ranks : {1, 2, 4}) {
    mix.ranks = ranks;
    LoopbackNetwork network(ranks);
    auto const errors = on_ranks(network, [&](LoopbackGroup& loopback) {
      CountingGroup group(loopback);
      HostBackend backend(host_devices(1));
      RankPipeline pipeline(rank_model(mix),
                            AnyOptimizer(true),
                            backend,
                            rank_options(mix),
                            rank_policies(mix, group));
      auto const before = group.received.load();
      for (std::size_t step = 0; step < mix.steps; ++step) {
        ToyData const data(ranks, {2, 3}, step);
        (void)pipeline.forward_backward(data.batch());
        pipeline.step();
      }
      pipeline.synchronize();
      auto const share = 1 / static_cast<double>(ranks);
      double parameters = 0;
      for (auto const& block : pipeline.plan().blocks.blocks) {
        parameters += static_cast<double>(block.master.bytes()) / 2;
      }
      // Gradients go and weights come, 2 bytes a parameter each.
      auto const least = 2 * (1 - share) * 2 * parameters * static_cast<double>(mix.steps);
      CHECK(static_cast<double>(group.received - before) <= 1.02 * least);
      // Two masters; optimizer copy, two states and, as ranks make gradients sums, a sum.
      auto const& plan = pipeline.plan();
      auto const sums = ranks == 1 ? 2.0 : 4 * share;
      CHECK(static_cast<double>(plan.host.state_bytes) / parameters ==
            doctest::Approx(4 + 12 * share + sums).epsilon(0.02));
      auto const ledger = total_bytes(plan.host.ledger, LedgerLine::Space::host);
      CHECK(static_cast<double>(pipeline.report().host_bytes_peak) ==
            doctest::Approx(static_cast<double>(ledger)).epsilon(0.02));
    });
    CHECK(errors == std::vector<std::string>(ranks));
  }
}

namespace {

/// Ranks of one device each that train matrices large enough to be cut well.
RankMix wide_mix() {
  RankMix mix{.calls = 1, .steps = 2, .dtype = DType::bf16, .clips = true, .adam = true};
  mix.width = 512;
  return mix;
}

/// What a rank with \p options says of its plan.
template <class F>
std::vector<std::string> with_plans(RankMix const& mix,
                                    std::function<void(PipelineOptions&, std::size_t)> const& set,
                                    F const& f) {
  LoopbackNetwork network(mix.ranks);
  return on_ranks(network, [&](LoopbackGroup& group) {
    auto options = rank_options(mix);
    set(options, group.rank());
    HostBackend backend(host_devices(std::max<std::size_t>(options.devices, 1)));
    RankPipeline pipeline(
        rank_model(mix), AnyOptimizer(mix.adam), backend, options, rank_policies(mix, group));
    f(pipeline, group.rank());
  });
}

}  // namespace

TEST_CASE("a rank keeps as much as its host budget has room for, and what is too small is named") {
  auto const mix = wide_mix();
  auto const host_bytes = [](RankPipeline& pipeline) {
    return total_bytes(pipeline.plan().ledger, LedgerLine::Space::host);
  };
  // What a rank takes that keeps nearly nothing, and one that keeps nearly all.
  Bytes bounds[2];
  (void)with_plans(
      mix,
      [](PipelineOptions& options, std::size_t) { options.rank_shares = {1e-9, 1}; },
      [&](RankPipeline& pipeline, std::size_t rank) { bounds[rank] = host_bytes(pipeline); });
  auto const [least, most] = bounds;
  auto const budget = [&](double room) {
    return least + static_cast<Bytes>(room * static_cast<double>(most - least));
  };
  double rooms[2] = {1.5, 0.3};
  auto const set = [&](PipelineOptions& options, std::size_t rank) {
    options.host_memory = budget(rooms[rank]);
  };
  auto const expected = serial_outcome(mix);
  CHECK(with_plans(mix, set, [&](RankPipeline& pipeline, std::size_t rank) {
          auto const share = rooms[rank] / 1.8;
          CHECK(static_cast<double>(host_bytes(pipeline)) ==
                doctest::Approx(static_cast<double>(budget(share))).epsilon(0.02));
          CHECK(outcome_of(mix, pipeline, 0) == expected);
          CHECK(static_cast<double>(pipeline.report().host_bytes_peak) ==
                doctest::Approx(static_cast<double>(host_bytes(pipeline))).epsilon(0.02));
        }) == std::vector<std::string>(2));

  rooms[0] = 0.6;
  auto const refusals = with_plans(mix, set, [](RankPipeline&, std::size_t) {});
  for (auto const& refusal : refusals) {
    CHECK(refusal.find("rank 1: the host budget of ") != std::string::npos);
  }
  auto const named = refusals[0].find(" (");
  REQUIRE(named != std::string::npos);
  auto const enough = std::stoull(refusals[0].substr(named + 2));
  CHECK(enough < budget(0.42));
  CHECK(with_plans(
            mix,
            [&](PipelineOptions& options, std::size_t rank) {
              options.host_memory = rank == 0 ? budget(rooms[0]) : enough;
            },
            [](RankPipeline&, std::size_t) {}) == std::vector<std::string>(2));

  // Shares that are given need room, too.
  for (auto const &refusal : with_plans(
           mix,
           [&](PipelineOptions& options, std::size_t rank) {
             set(options, rank);
             options.rank_shares = {1, 1};
           },
           [](RankPipeline&, std::size_t) {})) {
    CHECK(refusal.find("rank 1: the host budget of ") != std::string::npos);
    CHECK(refusal.find("with its part of the optimizer states") != std::string::npos);
  }
}

TEST_CASE("rounds are dealt by the speed of ranks, which follows from their devices") {
  RankMix const mix{.rounds = 4, .steps = 2, .clips = true};
  auto const expected = serial_outcome(mix);
  CHECK(with_plans(
            mix,
            [](PipelineOptions& options, std::size_t rank) {
              options.devices = rank == 0 ? 1 : 3;
              options.measures_rank_speeds = true;
            },
            [&](RankPipeline& pipeline, std::size_t rank) {
              CHECK(plan_options(pipeline.options()).rounds == (rank == 0 ? 2 : 6));
              CHECK(outcome_of(mix, pipeline, rank) == expected);
            }) == std::vector<std::string>(2));
}

TEST_CASE("ranks that would not train the same say what differs before they begin") {
  LoopbackNetwork network(2);
  auto const errors = on_ranks(network, [&](LoopbackGroup& group) {
    RankMix const mix{.seed = group.rank()};
    HostBackend backend(host_devices(1));
    RankPipeline const pipeline(
        rank_model(mix), AnyOptimizer(true), backend, rank_options(mix), rank_policies(mix, group));
  });
  for (auto const& error : errors) {
    CHECK(error.find("seed is 1 on rank 1 and 0 on rank 0") != std::string::npos);
  }
}

TEST_CASE("a batch is that of all ranks") {
  RankMix const mix{.micro_batches_per_round = 2, .rounds = 3};
  LoopbackNetwork network(2);
  auto const errors = on_ranks(network, [&](LoopbackGroup& group) {
    HostBackend backend(host_devices(1));
    RankPipeline pipeline(
        rank_model(mix), AnyOptimizer(true), backend, rank_options(mix), rank_policies(mix, group));
    ToyData const data(6, {2, 3}, 1);
    (void)pipeline.forward_backward(data.batch());
  });
  for (auto const& error : errors) {
    CHECK(error.find("the batch has 6 micro-batches; the pipeline runs 12 a call") == 0);
  }
}

}  // namespace ranks_equal_serial_test
