// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/snapshot_writer.hpp>

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/id.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/runtime/state/block_readers.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/hash_list.hpp>
#include <roundpipe/snapshots/snapshot.hpp>
#include <roundpipe/snapshots/snapshot_manifest.hpp>
#include <roundpipe/snapshots/staged_writes.hpp>
#include <roundpipe/snapshots/tensor_files.hpp>
#include <roundpipe/snapshots/write_snapshot.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/snapshot_training.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace snapshot_writer_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

namespace fs = std::filesystem;

SnapshotWriterOptions with_memory(Bytes bytes) {
  SnapshotWriterOptions options;
  options.copy_memory = bytes;
  return options;
}

/// What is in \p folder, by name.
std::vector<std::string> names_in(fs::path const& folder) {
  std::vector<std::string> names;
  for (auto const& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

using Names = std::vector<std::string>;

/// While it lives, files hold at most so many bytes, as on a full disk; writing more is an error.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit const limit{bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  SmallFiles(SmallFiles const&) = delete;
  SmallFiles& operator=(SmallFiles const&) = delete;
  ~SmallFiles() {
    (void)::setrlimit(RLIMIT_FSIZE, &before_);
    (void)std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

/// While it lives, nobody may write to \p folder: root becomes another user.
class ReadOnly {
 public:
  explicit ReadOnly(fs::path folder) : folder_(std::move(folder)), user_(::geteuid()) {
    REQUIRE(::chmod(folder_.c_str(), 0555) == 0);
    REQUIRE((user_ != 0 || ::seteuid(65534) == 0));
  }
  ReadOnly(ReadOnly const&) = delete;
  ReadOnly& operator=(ReadOnly const&) = delete;
  ~ReadOnly() {
    (void)::seteuid(user_);
    (void)::chmod(folder_.c_str(), 0755);
  }

 private:
  fs::path folder_;
  uid_t user_;
};

/// The state of \p trainer, with readers for whom nobody waits.
template <class Trainer>
TrainingState live_state(Trainer& trainer) {
  auto state = trainer.state();
  state.readers = std::make_shared<BlockReaders>(state.parameters.size());
  for (std::size_t i = 0; i < state.parameters.size(); ++i) {
    state.parameters[i].block = BlockId(i);
  }
  return state;
}

/// Saves step 4 where \p breaks lets nothing be written, in each mode: there must be one error
/// with \p code whose message says \p part, training and step 3 stay as they are, and saving goes
/// on.
template <class Breaks>
void require_one_error(std::errc code, std::string const& part, Breaks&& breaks) {
  for (auto const mode : {SnapshotMode::copied, SnapshotMode::live, SnapshotMode::waiting}) {
    CAPTURE(mode);
    TemporaryFolder const folder;
    auto trainer = small_trainer();
    auto whole = small_trainer();
    auto const expected = train_steps(whole, 0, 6);
    SnapshotWriter writer(folder.path / "snapshots",
                          with_memory(mode == SnapshotMode::copied ? 1_MiB : 0));
    train_steps(trainer, 0, 3);
    auto const state = [&] {
      return mode == SnapshotMode::live ? live_state(trainer) : trainer.state();
    };
    CHECK(writer.save(state()).mode == mode);
    writer.wait();
    train_steps(trainer, 3, 4);
    auto const fourth = state();
    auto const error = breaks(folder.path / "snapshots", [&] {
      return error_of([&] {
        writer.save(fourth);
        writer.wait();
      });
    });
    CHECK(!(fourth.readers && fourth.readers->is_held()));
    CHECK(error.code() == code);
    CHECK(error.message().starts_with("snapshot of step 4: cannot "));
    CHECK(contains(error.message(), part));
    writer.wait();  // the error came once
    writer.check();
    CHECK(writer.last()->step == 3);
    CHECK(names_in(writer.folder()) == Names{"step-000000003"});

    train_steps(trainer, 4, 5);
    CHECK(trainer.state().position.step == 5);
    writer.save(state());
    writer.wait();
    CHECK(writer.last()->step == 5);
    auto resumed = small_trainer();
    resumed.restore(Snapshot(*newest_snapshot(writer.folder())).state());
    CHECK(train_steps(resumed, 5, 6).back() == expected.back());
  }
}

}  // namespace

TEST_CASE("the training goes on while its state is written, or waits: the report says which") {
  TemporaryFolder const folder;
  auto trainer = small_trainer();
  train_steps(trainer, 0, 3);
  auto const digest = weights_digest(trainer);
  auto const needed = StateCopy::bytes_of(trainer.state());
  for (bool const copies : {true, false}) {
    CAPTURE(copies);
    SnapshotWriter writer(folder.path / (copies ? "copied" : "not"),
                          with_memory(copies ? needed : needed - 1));
    CHECK(!writer.last());
    auto other = small_trainer();
    other.restore(trainer.state());
    auto const report = writer.save(other.state());
    CHECK(report.mode == (copies ? SnapshotMode::copied : SnapshotMode::waiting));
    CHECK(report.state_bytes == needed);
    CHECK((report.copy_seconds > 0) == copies);
    CHECK((report.write_seconds > 0) == !copies);
    CHECK(report.wait_seconds >= report.copy_seconds + report.write_seconds);
    train_steps(other, 3, 5);  // changes what the trainer's own tensors hold
    writer.wait();
    CHECK(!writer.is_busy());
    auto const last = writer.last();
    REQUIRE(last);
    CHECK(last->step == 3);
    CHECK(last->path == writer.folder() / "step-000000003");
    CHECK(last->written_bytes > 0);
    CHECK(last->write_seconds > 0);
    CHECK(last->wait_seconds == report.wait_seconds);
    auto resumed = small_trainer();
    resumed.restore(Snapshot(last->path).state());
    CHECK(weights_digest(resumed) == digest);
  }
  SnapshotWriter writer(folder.path / "default");
  CHECK(writer.save(trainer.state()).mode == SnapshotMode::copied);
}

TEST_CASE("a live state is written as it was, though each block changes as soon as it was read") {
  TemporaryFolder const folder;
  SmallTraining training;
  training.model.types.width = 512;
  training.model.frozen_input = true;
  auto trainer = small_trainer(training);
  train_steps(trainer, 0, 1);
  auto const digest = weights_digest(trainer);
  auto state = live_state(trainer);
  std::vector<std::vector<std::byte>> memory;
  auto const keep = [&](HostTensor& tensor) {
    tensor.bytes = memory.emplace_back(tensor.bytes.begin(), tensor.bytes.end());
  };
  for (auto& parameter : state.parameters) {
    keep(parameter.weights);
    std::ranges::for_each(parameter.optimizer, keep);
    keep(parameter.visible);
  }
  std::optional<BlockHold> other(state.readers);
  auto options = with_memory(0);
  options.format.tensor_name = [&](std::string const& name) {
    while (other && !other->wanted().valid()) {
      std::this_thread::yield();
    }
    other.reset();  // the training waits for a block, so from here on for the writer alone
    return name;
  };
  SnapshotWriter writer(folder.path / "snapshots", options);
  CHECK(writer.save(state).mode == SnapshotMode::live);
  auto bytes = memory.rbegin();
  for (auto parameter = state.parameters.rbegin(); parameter != state.parameters.rend();
       ++parameter) {
    state.readers->wait(parameter->block);
    for (std::size_t i = 0; i < 2 + parameter->optimizer.size(); ++i) {
      std::ranges::fill(*bytes++, std::byte{0xff});
    }
  }
  writer.wait();
  CHECK_FALSE(state.readers->is_held());
  auto const last = writer.last();
  CHECK(last->mode == SnapshotMode::live);
  CHECK(last->state_bytes == StateCopy::bytes_of(state));
  CHECK(last->copy_seconds == 0);
  CHECK(last->update_wait_seconds > 0);
  CHECK(last->buffer_bytes == StagingMemory::least_bytes);
  auto resumed = small_trainer(training);
  resumed.restore(Snapshot(last->path).state());
  CHECK(weights_digest(resumed) == digest);
  CHECK(train_steps(resumed, 1, 2) == train_steps(trainer, 1, 2));
}

TEST_CASE("the memory for a copy that is too large for it is a buffer") {
  TemporaryFolder const folder;
  auto const size = StagingMemory::least_bytes + 3 * staging_chunk_bytes;
  std::vector<std::byte> memory(size, std::byte{3});
  auto const readers = std::make_shared<BlockReaders>(size / 4_MiB);
  TrainingState state{{}, {}, readers};
  for (std::size_t b = 0; b < readers->blocks(); ++b) {
    HostTensor const weights{HostBytes(memory).subspan(b * 4_MiB, 4_MiB), {1 << 20}, DType::f32};
    state.parameters.push_back({std::to_string(b), false, weights, {}, weights, {}, BlockId(b)});
  }
  SnapshotWriter writer(folder.path, with_memory(size - 1));
  CHECK(writer.save(state).mode == SnapshotMode::live);
  for (std::size_t b = readers->blocks(); b-- > 0;) {
    readers->wait(BlockId(b));
    std::ranges::fill(HostBytes(memory).subspan(b * 4_MiB, 4_MiB), std::byte{});
  }
  writer.wait();
  CHECK(writer.last()->buffer_bytes == size);
  Snapshot const snapshot(writer.last()->path);
  for (auto const& parameter : snapshot.state().parameters) {
    CHECK(std::ranges::count(parameter.weights.bytes, std::byte{3}) == 4_MiB);
  }
}

TEST_CASE("blocks are written as a backward updates them, and frozen ones last") {
  TrainingState state;
  for (bool const frozen : {false, true, false, true, false}) {
    state.parameters.emplace_back().frozen = frozen;
  }
  CHECK(detail::reversed_write_order(state) == std::vector<std::size_t>{1, 3, 0, 2, 4});
}

TEST_CASE("of a copied state frozen parameters alone are held, until they are read") {
  for (bool const frozen : {true, false}) {
    TemporaryFolder const folder;
    SmallTraining training;
    training.model.frozen_input = frozen;
    auto trainer = small_trainer(training);
    auto const state = live_state(trainer);
    std::atomic<bool> goes_on = false;
    SnapshotWriterOptions options;
    options.format.tensor_name = [&](std::string const& name) {
      goes_on.wait(false);
      return name;
    };
    SnapshotWriter writer(folder.path / "snapshots", options);
    CHECK(writer.save(state).mode == SnapshotMode::copied);
    CHECK(state.readers->is_held() == frozen);
    goes_on = true;
    goes_on.notify_all();
    writer.wait();
    CHECK_FALSE(state.readers->is_held());
  }
}

TEST_CASE("the last snapshots are kept, and nothing of others is touched") {
  TemporaryFolder const folder;
  auto const path = folder.path / "a" / "b";
  fs::create_directories(path / "step-000000001.partial" / "half");  // of a writer that was killed
  fs::create_directories(path / "step-x.partial");
  put_file(path / "step-000000000", "a file");
  put_file(path / "notes.partial", "notes");
  Names const others{"notes.partial", "step-000000000", "step-x.partial"};
  auto const with = [&](Names names) {
    names.insert(names.end(), others.begin(), others.end());
    std::ranges::sort(names);
    return names;
  };
  auto trainer = small_trainer();
  for (std::size_t const keep : {2, 0}) {
    SnapshotWriterOptions options;
    options.keep = keep;
    SnapshotWriter writer(path, options);
    for (int i = 0; i < 3; ++i) {
      auto const step = trainer.state().position.step;
      train_steps(trainer, step, step + 1);
      writer.save(trainer.state(), {.data = {}, .program = step});
    }
    writer.wait();
    CHECK(names_in(path) ==
          with(keep == 2 ? Names{"step-000000002", "step-000000003"} : Names{"step-000000006"}));
  }
  SnapshotWriter writer(path);
  writer.save(trainer.state(), {.data = {}, .program = "again"});  // in place of the same step
  writer.wait();
  CHECK(names_in(path) == with({"step-000000006"}));
  CHECK(Snapshot(path / "step-000000006").program() == "again");

  auto earlier = small_trainer();
  train_steps(earlier, 0, 2);
  auto const error = error_of([&] { writer.save(earlier.state()); });
  CHECK(error.code() == Errc::invalid_argument);
  CHECK(error.message() ==
        "cannot save step 2 beside '" + (path / "step-000000006").string() +
            "', which is later: a folder is of one training; choose another, or remove what you "
            "have given up");
  CHECK(names_in(path) == with({"step-000000006"}));
}

TEST_CASE("a folder is of one writer") {
  TemporaryFolder const folder;
  auto const second = [&] { return error_of([&] { SnapshotWriter const writer(folder.path); }); };
  {
    SnapshotWriter const writer(folder.path);
    auto const error = second();
    CHECK(error.code() == std::errc::resource_unavailable_try_again);
    CHECK(error.message() == "cannot lock, because another writer is at work there, the folder '" +
                                 folder.path.string() + "'");
  }
  CHECK(second().message() == "nothing was thrown");
}

TEST_CASE("a folder that cannot be made is refused at once") {
  TemporaryFolder const folder;
  auto const file = put_file(folder.path / "file", "x");
  auto const error = error_of([&] { SnapshotWriter const writer(file / "snapshots"); });
  CHECK(error.code() == std::errc::not_a_directory);
  CHECK(error.message() == "cannot create the folder '" + (file / "snapshots").string() + "'");
  CHECK(error_of([&] { SnapshotWriter const writer(file); }).code() == std::errc::not_a_directory);
}

TEST_CASE("a folder that vanishes is one error, and the training goes on") {
  require_one_error(
      std::errc::no_such_file_or_directory, "/snapshots'", [](auto const& folder, auto&& saves) {
        auto const away = folder.string() + ".away";
        fs::rename(folder, away);
        auto const error = saves();
        CHECK(!fs::exists(folder));  // perhaps a disk that is not mounted
        fs::rename(away, folder);
        return error;
      });
}

TEST_CASE("a read-only folder is one error, and the training goes on") {
  require_one_error(std::errc::permission_denied,
                    "/snapshots/step-000000004.partial'",
                    [](auto const& folder, auto&& saves) {
                      ReadOnly const held(folder);
                      return saves();
                    });
}

TEST_CASE("a full disk is one error, whichever file it meets, and the training goes on") {
  for (auto const& [bytes, file] : {std::pair{rlim_t{100}, "model.safetensors"},
                                    std::pair{rlim_t{1500}, "optimizer.safetensors"}}) {
    require_one_error(std::errc::file_too_large,
                      std::string("/snapshots/step-000000004.partial/") + file,
                      [bytes](auto const&, auto&& saves) {
                        SmallFiles const held(bytes);
                        return saves();
                      });
  }
}

namespace {

/// What rank \p rank of \p ranks has of \p state: unequal parts of its trained parameters.
TrainingState part_of(TrainingState state, std::size_t rank, std::size_t ranks) {
  for (auto& parameter : state.parameters) {
    if (parameter.frozen) {
      continue;
    }
    auto const size = parameter.weights.shape.size();
    for (std::size_t r = 0; r < ranks; ++r) {
      parameter.parts.push_back(
          {size * r * r / (ranks * ranks), size * (r + 1) * (r + 1) / (ranks * ranks)});
    }
    auto const [begin, end] = parameter.parts[rank];
    auto const keep_part = [begin = begin, end = end](HostTensor& tensor) {
      auto const bytes = size_of(tensor.dtype);
      tensor.bytes = tensor.bytes.subspan(begin * bytes, (end - begin) * bytes);
    };
    keep_part(parameter.weights);
    std::ranges::for_each(parameter.optimizer, keep_part);
    keep_part(parameter.visible);
  }
  return state;
}

/// Calls \p f with the group of each rank, on a thread of its own. \returns the errors, by rank.
template <class F>
std::vector<Error> errors_on_ranks(std::size_t ranks, F const& f) {
  LoopbackNetwork network(ranks);
  std::vector<Error> errors(ranks, Error(Errc::aborted, ""));
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks; ++r) {
    threads.emplace_back([&, r] {
      LoopbackGroup group(network, r);
      errors[r] = error_of([&] { f(group); });
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  return errors;
}

}  // namespace

TEST_CASE("ranks write the tensors and the manifest of one process, byte for byte") {
  SmallTraining training;
  training.model.frozen_input = true;
  auto trainer = small_trainer(training);
  train_steps(trainer, 0, 3);
  auto const state = live_state(trainer);
  for (std::size_t const ranks : {2, 3, 4}) {
    for (bool const stores_frozen : {true, false}) {
      CAPTURE(ranks);
      TemporaryFolder const folder;
      SnapshotFormat format;
      format.stores_frozen = stores_frozen;
      write_snapshot(folder.path / "one", state, {{}, "program"}, format);
      auto const errors = errors_on_ranks(ranks, [&](LoopbackGroup& group) {
        SnapshotWriterOptions options;
        options.format = format;
        options.copy_memory = group.rank() % 2 * 1_MiB;
        options.group = group;
        SnapshotWriter writer(folder.path / "all", options);
        auto const mode = writer.save(part_of(state, group.rank(), ranks), {{}, "program"}).mode;
        CHECK(mode == (group.rank() % 2 == 1 ? SnapshotMode::copied : SnapshotMode::live));
        writer.wait();
        CHECK(writer.last()->step == 3);
        throw Error(Errc::aborted, "as wanted");
      });
      for (auto const& error : errors) {
        CHECK(error.message() == "as wanted");
      }
      auto const path = folder.path / "all" / "step-000000003";
      CHECK(names_in(path) == Names{"XXH128PARTS",
                                    "model.safetensors",
                                    "optimizer.safetensors",
                                    "snapshot.json",
                                    "visible.safetensors"});
      for (auto const& name : names_in(path)) {
        if (name != "XXH128PARTS") {
          CHECK(content_of(path / name) == content_of(folder.path / "one" / name));
        }
      }
      auto resumed = small_trainer(training);
      resumed.restore(Snapshot(path).state(resumed.state()));
      CHECK(weights_digest(resumed) == weights_digest(trainer));
      for (auto const& error : errors_on_ranks(3, [&](LoopbackGroup& group) {
             Snapshot const snapshot(path, group);
             throw Error(Errc::aborted, "loaded");
           })) {
        CHECK(error.message() == "loaded");
      }
      for (std::string const name : {"optimizer.safetensors", "snapshot.json"}) {
        auto text = content_of(path / name);
        auto damaged = text;
        damaged[damaged.size() / 2] ^= 1;
        put_file(path / name, damaged);
        CHECK(contains(error_of([&] { Snapshot const snapshot(path); }).message(),
                       "but 'XXH128PARTS' says "));
        for (auto const& error : errors_on_ranks(
                 2, [&](LoopbackGroup& group) { Snapshot const snapshot(path, group); })) {
          CHECK(contains(error.message(), "but 'XXH128PARTS' says "));
        }
        put_file(path / name, text);
      }
    }
  }
}

TEST_CASE("what the disk keeps must be what all ranks have written") {
  TrainingState const state;
  for (std::uint64_t const read : {5, 6}) {
    detail::TensorFiles files("folder", state, {}, {});
    SnapshotManifest said;
    HashList list;
    auto const sums = [](std::string const& what, std::uint64_t sum) {
      return std::vector{"{\"sums\": {\"model.safetensors\": " + std::to_string(sum) +
                         "}, \"base\": {}, \"hashes\": {\"model.safetensors\": \"" + what + "\"}}"};
    };
    auto const error =
        error_of([&] { files.describe(sums("", 5), sums("a hash", read), said, list); });
    if (read == 5) {
      CHECK(list["model.safetensors"] == "a hash");
    } else {
      CHECK(error.code() == std::errc::io_error);
      CHECK(error.message() == "cannot read back what was written to 'folder/model.safetensors'");
    }
  }
}

TEST_CASE("what fails on one rank is the error of all, with its number, and nobody publishes") {
  auto trainer = small_trainer();
  train_steps(trainer, 0, 3);
  auto const third = live_state(trainer);
  auto other = small_trainer();
  train_steps(other, 0, 4);
  auto const fourth = live_state(other);
  struct Case {
    std::string what;   // fails
    std::size_t rank;   // whose
    std::string error;  // behind "snapshot of step 4: rank RANK: "
  };
  for (auto const& [what, bad, part] :
       {Case{"a name", 2, "no such name"},
        Case{"a folder of its own", 1, "cannot open to write '"},
        Case{"a folder that has gone", 0, "cannot "},
        Case{"another step", 1, "saves another step or other tensors than rank 0"}}) {
    CAPTURE(what);
    TemporaryFolder const folder;
    auto const path = folder.path / "all";
    auto const errors = errors_on_ranks(3, [&, what = what, bad = bad](LoopbackGroup& group) {
      bool const fails = group.rank() == bad;
      bool broken = false;
      SnapshotWriterOptions options;
      options.group = group;
      options.copy_memory = group.rank() % 2 * 1_MiB;
      options.format.tensor_name = [&](std::string const& name) {
        if (broken && fails && what == "a name") {
          throw Error(Errc::bad_file, "no such name");
        }
        return name;
      };
      SnapshotWriter writer(fails && what == "a folder of its own" ? folder.path / "own" : path,
                            options);
      auto const save = [&](TrainingState const& state) {
        writer.save(part_of(state, group.rank(), 3));
        writer.wait();
      };
      if (what != "a folder of its own") {
        save(third);
      }
      broken = true;
      group.barrier(GroupChannel::control);
      if (what == "a folder that has gone" && fails) {
        fs::rename(path, folder.path / "away");
      }
      group.barrier(GroupChannel::control);
      auto const error = error_of([&] { save(what == "another step" && fails ? third : fourth); });
      broken = false;
      group.barrier(GroupChannel::control);
      if (what == "a folder that has gone" && fails) {
        fs::rename(folder.path / "away", path);
      }
      group.barrier(GroupChannel::control);
      if (fails && what != "a folder of its own") {
        CHECK(names_in(path) == Names{"step-000000003"});
        (void)Snapshot(path / "step-000000003");
      }
      group.barrier(GroupChannel::control);
      if (what != "a folder of its own") {  // the next one succeeds
        save(fourth);
        CHECK(writer.last()->step == 4);
      }
      throw error;
    });
    for (auto const& error : errors) {
      CHECK(contains(error.message(), "rank " + std::to_string(bad)));
      CHECK(contains(error.message(), part));
      CHECK(error.code() == errors[0].code());
    }
    CHECK(names_in(path) ==
          (what == "a folder of its own" ? Names{} : Names{"step-000000003", "step-000000004"}));
  }
  CHECK_FALSE(third.readers->is_held());
  CHECK_FALSE(fourth.readers->is_held());
}

TEST_CASE("an error that one rank was told of earlier than another does not part them") {
  auto trainer = small_trainer();
  train_steps(trainer, 0, 3);
  auto const state = trainer.state();
  TemporaryFolder const folder;
  errors_on_ranks(2, [&](LoopbackGroup& group) {
    SnapshotWriterOptions options;
    options.group = group;
    bool broken = group.rank() == 1;
    options.format.tensor_name = [&](std::string const& name) {
      require(!std::exchange(broken, false), Errc::bad_file, "broken");
      return name;
    };
    SnapshotWriter writer(folder.path, options);
    auto const part = part_of(state, group.rank(), 2);
    writer.save(part);
    if (group.rank() == 0) {
      CHECK(error_of([&] { writer.wait(); }).message() == "snapshot of step 3: rank 1: broken");
    }
    auto const error = error_of([&] { writer.save(part); });
    CHECK(error.message() == (group.rank() == 0 ? "rank 1: snapshot of step 3: rank 1: broken"
                                                : "snapshot of step 3: rank 1: broken"));
    CHECK(error.code() == Errc::bad_file);
    writer.save(part);
    writer.wait();
    CHECK(writer.last()->step == 3);
  });
}

TEST_CASE("an error comes with the next save, which saves nothing, or with a check, once") {
  TemporaryFolder const folder;
  auto trainer = small_trainer();
  train_steps(trainer, 0, 1);
  SnapshotWriter writer(folder.path / "snapshots");
  auto const fails = [&] {
    fs::remove_all(writer.folder());
    writer.save(trainer.state());
    while (writer.is_busy()) {
    }
    CHECK(!writer.last());
    fs::create_directory(writer.folder());
  };
  fails();
  CHECK(error_of([&] { writer.save(trainer.state()); }).code() ==
        std::errc::no_such_file_or_directory);
  CHECK(names_in(writer.folder()).empty());
  fails();
  CHECK(error_of([&] { writer.check(); }).code() == std::errc::no_such_file_or_directory);
  writer.check();
  writer.save(trainer.state());
  writer.wait();
  CHECK(names_in(writer.folder()) == Names{"step-000000001"});
}

}  // namespace snapshot_writer_test
