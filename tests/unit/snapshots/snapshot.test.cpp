// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/snapshot.hpp>

#include <roundpipe/core/error.hpp>
#include <roundpipe/hosts/loopback_group.hpp>
#include <roundpipe/io/safetensors.hpp>
#include <roundpipe/snapshots/write_snapshot.hpp>
#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/snapshot_training.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace snapshot_test {

using namespace roundpipe;
using namespace roundpipe::test;

namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_in(fs::path const& folder) {
  std::vector<std::string> names;
  for (auto const& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

/// Writes \p content to \p file of the snapshot \p folder, and its hash to the list.
void forge(fs::path const& folder, std::string_view file, std::string const& content) {
  put_file(folder / file, content);
  auto list = parse_hash_list(bytes_of(content_of(folder / snapshot_files::hashes)), "list");
  list[std::string(file)] = content_hash(bytes_of(content));
  put_file(folder / snapshot_files::hashes, hash_list_text(list));
}

std::string replaced(std::string text, std::string const& from, std::string const& to) {
  auto const at = text.find(from);
  REQUIRE_MESSAGE(at != std::string::npos, from);
  return text.replace(at, from.size(), to);
}

/// A snapshot of three steps of \p training.
void save(fs::path const& folder, SmallTraining const& training = {}, SnapshotFormat format = {}) {
  auto trainer = small_trainer(training);
  train_steps(trainer, 0, 3);
  write_snapshot(folder, trainer.state(), {}, format);
}

}  // namespace

TEST_CASE("a training goes on from a snapshot as if nothing had happened, bit for bit") {
  for (int const staleness : {0, 1}) {
    for (auto const type : {DType::f32, DType::bf16, DType::f16}) {
      CAPTURE(staleness);
      CAPTURE(name_of(type));
      TemporaryFolder const folder;
      SmallTraining training;
      training.options.staleness = staleness;
      training.model.types = {5, type, type};
      if (type == DType::f16) {  // the first steps overflow
        training.options.loss_scale =
            LossScaleOptions{.initial = 0x1p24, .backoff = 1.0 / 64, .growth_interval = 2};
      }
      auto trainer = small_trainer(training);
      train_steps(trainer, 0, 3);
      auto const state = trainer.state();
      CHECK((type == DType::f16) == (state.position.skipped_steps > 0));
      write_snapshot(folder.path / "saved", state);
      auto const expected = train_steps(trainer, 3, 6);

      auto resumed = small_trainer(training);
      train_steps(resumed, 10, 12);  // something else
      Snapshot const snapshot(folder.path / "saved");
      CHECK(snapshot.position().step == 3);
      resumed.restore(snapshot.state());
      CHECK(train_steps(resumed, 3, 6) == expected);
    }
  }
}

TEST_CASE("a snapshot's files are named after what they hold, and others can read the weights") {
  TemporaryFolder const folder;
  auto trainer = small_trainer();
  train_steps(trainer, 0, 2);
  auto const state = trainer.state();
  auto const path = folder.path / "saved";
  auto const bytes = write_snapshot(
      path, state, {}, {.tensor_name = [](auto const& name) { return "model." + name; }});

  std::vector<std::string> const files{"XXH128SUMS",
                                       "model.safetensors",
                                       "optimizer.safetensors",
                                       "snapshot.json",
                                       "visible.safetensors"};
  CHECK(files_in(path) == files);
  CHECK(files_in(folder.path) == std::vector<std::string>{"saved"});
  Bytes sum = 0;
  for (auto const& file : files) {
    sum += fs::file_size(path / file);
  }
  CHECK(bytes == sum);

  SafetensorsFile const weights(path / "model.safetensors");
  SafetensorsFile const optimizer(path / "optimizer.safetensors");
  SafetensorsFile const visible(path / "visible.safetensors");
  CHECK(weights.metadata() == SafetensorsMetadata{{"format", "pt"}});
  CHECK(weights.size() == state.parameters.size());
  for (auto const& parameter : state.parameters) {
    auto const same = [](StoredTensor const& stored, HostTensor const& tensor) {
      return stored.info().type() == tensor.dtype && stored.info().shape() == tensor.shape &&
             text_of(stored.bytes()) == text_of(tensor.bytes);
    };
    CHECK(same(weights.at("model." + parameter.name), parameter.weights));
    CHECK(same(optimizer.at(parameter.name + "@state0"), parameter.optimizer[0]));
    CHECK(same(optimizer.at(parameter.name + "@state1"), parameter.optimizer[1]));
    CHECK(same(visible.at(parameter.name), parameter.visible));
    CHECK(visible.at(parameter.name).info().dtype == "BF16");
  }
  auto resumed = small_trainer();
  resumed.restore(Snapshot(path).state());
  CHECK(weights_digest(resumed) == weights_digest(trainer));

  auto const twice = error_of([&] {
    write_snapshot(
        folder.path / "twice", state, {}, {.tensor_name = [](auto const&) { return "w"; }});
  });
  CHECK(twice.message() == "a safetensors file cannot hold two tensors 'w'");
  CHECK(files_in(folder.path) == std::vector<std::string>{"saved"});
}

TEST_CASE("a synchronous snapshot has no older weights, and goes on where they were older") {
  TemporaryFolder const folder;
  SmallTraining synchronous;
  synchronous.options.staleness = 0;
  save(folder.path / "saved", synchronous);
  CHECK(!fs::exists(folder.path / "saved" / "visible.safetensors"));
  auto trainer = small_trainer();  // with staleness 1
  trainer.restore(Snapshot(folder.path / "saved").state());
  auto whole = small_trainer(synchronous);
  train_steps(whole, 0, 3);
  CHECK(weights_digest(trainer) == weights_digest(whole));
}

TEST_CASE("the position in the data and the program's own text come back") {
  TemporaryFolder const folder;
  auto const trainer = small_trainer();
  DataPosition const data{.rows = 12, .seed = ~std::uint64_t{0}, .fingerprint = 1ULL << 63U};
  nlohmann::json const program{{"steps", 20}, {"losses", {0.1, 1e-300}}, {"name", "\u00e9"}};
  write_snapshot(folder.path / "saved", trainer.state(), {data, program});
  Snapshot const snapshot(folder.path / "saved");
  CHECK(snapshot.data() == data);
  CHECK(snapshot.program() == program);
  CHECK(snapshot.path() == folder.path / "saved");

  write_snapshot(folder.path / "plain", trainer.state());
  Snapshot const plain(folder.path / "plain");
  CHECK(!plain.data());
  CHECK(plain.program() == nlohmann::json::object());
  CHECK(plain.parameters().size() == trainer.state().parameters.size());

  auto const error =
      error_of([&] { write_snapshot(folder.path / "bad", trainer.state(), {data, "\xff"}); });
  CHECK(error.code() == Errc::invalid_argument);
  nlohmann::json deep;
  for (int i = 0; i < 64; ++i) {
    deep = nlohmann::json::array({deep});
  }
  CHECK(contains(error_of([&] {
                   write_snapshot(folder.path / "bad", trainer.state(), {data, deep});
                 }).message(),
                 "bad.partial/snapshot.json': the text nests deeper than 64 levels"));
  CHECK(!fs::exists(folder.path / "bad.partial"));
}

TEST_CASE("a changed byte, a missing one and one too many in any file are found, by its name") {
  TemporaryFolder const folder;
  auto const path = folder.path / "saved";
  save(path);
  for (auto const& file : files_in(path)) {
    CAPTURE(file);
    auto const content = content_of(path / file);
    auto const refused = [&](std::string const& damaged) {
      put_file(path / file, damaged);
      auto const error = error_of([&] { Snapshot const snapshot(path); });
      CHECK(error.code() == Errc::bad_file);
      // A changed hash and a changed file look the same.
      CHECK((contains(error.message(), "'" + (path / file).string() + "'") ||
             contains(error.message(), "'XXH128SUMS' says")));
    };
    for (std::size_t i = 0; i < content.size(); i += 1 + content.size() / 29) {
      auto damaged = content;
      damaged[i] = static_cast<char>(damaged[i] ^ 1);
      refused(damaged);
    }
    refused(content.substr(0, content.size() - 1));
    refused(content.substr(0, content.size() / 2));
    refused("");
    refused(content + " ");
    fs::remove(path / file);
    auto const missing = error_of([&] { Snapshot const snapshot(path); });
    CHECK(missing.code() == std::errc::no_such_file_or_directory);
    CHECK(contains(missing.message(), (path / file).string()));
    put_file(path / file, content);
  }
  (void)Snapshot(path);

  // A whole file of another snapshot.
  auto trainer = small_trainer();
  train_steps(trainer, 0, 4);
  write_snapshot(folder.path / "other", trainer.state());
  fs::copy_file(folder.path / "other" / "optimizer.safetensors",
                path / "optimizer.safetensors",
                fs::copy_options::overwrite_existing);
  CHECK(contains(error_of([&] { Snapshot const snapshot(path); }).message(),
                 "optimizer.safetensors': the content is damaged: its hash is "));
  CHECK(error_of([&] { Snapshot const snapshot(folder.path / "none"); }).code() ==
        std::errc::no_such_file_or_directory);
}

TEST_CASE("ranks load a snapshot together, or refuse it together") {
  TemporaryFolder const folder;
  auto const path = folder.path / "saved";
  save(path);
  auto const other = folder.path / "other";
  auto trainer = small_trainer();
  train_steps(trainer, 0, 4);
  write_snapshot(other, trainer.state());
  // What each of two ranks throws that loads its path.
  auto const errors_of = [](std::array<fs::path, 2> const& paths) {
    LoopbackNetwork network(2);
    std::array<std::optional<Error>, 2> errors;
    std::array<std::thread, 2> threads;
    for (std::size_t r = 0; r < 2; ++r) {
      threads[r] = std::thread([&, r] {
        LoopbackGroup group(network, r);
        try {
          Snapshot const snapshot(paths[r], group);
          CHECK(snapshot.position().step == 3);
        } catch (Error const& error) {
          errors[r] = error;
        }
      });
    }
    for (auto& thread : threads) {
      thread.join();
    }
    CHECK(errors[0].has_value() == errors[1].has_value());
    return errors;
  };
  CHECK(!errors_of({path, path})[0]);
  for (auto const& error : errors_of({path, folder.path / "none"})) {
    CHECK(error.value().code() == std::errc::no_such_file_or_directory);
    CHECK(contains(error->message(), "rank 1: "));
  }
  for (auto const& error : errors_of({path, other})) {
    CHECK(contains(error.value().message(), "rank 1 another one than rank 0"));
  }
  for (auto const& file : {"model.safetensors", "optimizer.safetensors", "visible.safetensors"}) {
    auto const content = content_of(path / file);
    auto damaged = content;
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    put_file(path / file, damaged);
    for (auto const& error : errors_of({path, path})) {
      CHECK(contains(error.value().message(), file + std::string("': the content is damaged")));
    }
    put_file(path / file, content);
  }
}

TEST_CASE("files that contradict each other are refused, although their hashes fit") {
  TemporaryFolder const folder;
  auto const path = folder.path / "saved";
  auto const message_of = [&](std::string_view file, std::string const& content) {
    save(path);
    forge(path, file, content);
    if (file != snapshot_files::manifest) {
      auto const said = nlohmann::json::parse(content_of(path / snapshot_files::manifest));
      auto forged = said;
      forged["files"][std::string(file)] = content.size();
      forge(path, snapshot_files::manifest, forged.dump());
    }
    auto const error = error_of([&] { Snapshot const snapshot(path); });
    CHECK(error.code() == Errc::bad_file);
    auto const begin = "'" + path.string() + "/";
    CHECK(error.message().starts_with(begin));
    return error.message().substr(begin.size());
  };
  save(path);
  auto const manifest = content_of(path / "snapshot.json");
  auto const changed = [&](std::string const& from, std::string const& to) {
    return message_of(snapshot_files::manifest, replaced(manifest, from, to));
  };
  CHECK(changed("\"visible.safetensors\"", "\"../../etc/passwd\"") ==
        "snapshot.json': files name '../../etc/passwd', of which 'XXH128SUMS' has no hash");
  CHECK(changed("\"visible.safetensors\"", "\"snapshot.json\"") ==
        "snapshot.json': files name 'snapshot.json', of which 'XXH128SUMS' has no hash");
  auto without = nlohmann::json::parse(manifest);
  without["files"].erase("visible.safetensors");
  CHECK(message_of(snapshot_files::manifest, without.dump()) ==
        "snapshot.json': files do not name 'visible.safetensors'");
  CHECK(changed("\"visible_step\": 2", "\"visible_step\": 3") ==
        "visible.safetensors': the header tells of 7 tensors, but the parameters of "
        "'snapshot.json' have 0");
  CHECK(changed("\"tensor\": \"0.weight\"", "\"tensor\": \"nobody\"") ==
        "model.safetensors': tensor 'nobody' is missing");
  CHECK(changed("\"states\": 2", "\"states\": 1") ==
        "optimizer.safetensors': the header tells of 14 tensors, but the parameters of "
        "'snapshot.json' have 13");
  CHECK(changed("\"states\": 2", "\"states\": 3") ==
        "optimizer.safetensors': tensor '0.weight@state2' is missing");
  auto const weights = content_of(path / "model.safetensors");
  CHECK(message_of(snapshot_files::weights, replaced(weights, "\"F32\"", "\"U32\"")) ==
        "model.safetensors': tensor '0.weight' is U32[3, 5], which no parameter is");
  CHECK(contains(message_of(snapshot_files::weights, replaced(weights, "[3,5]", "[3,5,1,1,1,1,1]")),
                 "model.safetensors': "));
  CHECK(contains(message_of(snapshot_files::weights, "no safetensors"), "model.safetensors': "));

  // Without the file that the position asks for.
  SmallTraining synchronous;
  synchronous.options.staleness = 0;
  save(folder.path / "sync", synchronous);
  forge(folder.path / "sync",
        snapshot_files::manifest,
        replaced(content_of(folder.path / "sync" / "snapshot.json"),
                 "\"visible_step\": 3",
                 "\"visible_step\": 2"));
  CHECK(contains(error_of([&] { Snapshot const snapshot(folder.path / "sync"); }).message(),
                 "files do not name 'visible.safetensors', which the position asks for"));
}

TEST_CASE("frozen parameters are stored, or left to the checkpoint that they came from") {
  TemporaryFolder const folder;
  SmallTraining training;
  training.model.frozen_input = true;
  training.model.frozen_dense = 1;
  auto trainer = small_trainer(training);
  train_steps(trainer, 0, 3);
  auto const stored = folder.path / "stored";
  auto const bare = folder.path / "bare";
  write_snapshot(stored, trainer.state());
  write_snapshot(bare, trainer.state(), {}, {.stores_frozen = false});
  CHECK(fs::file_size(bare / "model.safetensors") < fs::file_size(stored / "model.safetensors"));
  CHECK(fs::file_size(bare / "optimizer.safetensors") ==
        fs::file_size(stored / "optimizer.safetensors"));
  auto const expected = train_steps(trainer, 3, 6);

  auto other = training;  // another base: other first values
  other.options.seed = 8;
  {
    auto resumed = small_trainer(training);
    auto const base = small_trainer(other);
    resumed.restore(Snapshot(stored).state());
    CHECK(train_steps(resumed, 3, 6) == expected);
  }
  Snapshot const snapshot(bare);
  auto resumed = small_trainer(training);
  resumed.restore(snapshot.state(resumed.state()));
  CHECK(train_steps(resumed, 3, 6) == expected);

  CHECK(error_of([&] { (void)snapshot.state(); }).message() ==
        "the snapshot '" + bare.string() +
            "' does not hold the frozen parameter 0.weight; give Snapshot::state the state of a "
            "trainer that has it");
  auto const message_with = [&](TrainingState const& own) {
    auto const error = error_of([&] { (void)snapshot.state(own); });
    CHECK(error.code() == Errc::invalid_argument);
    auto const begin =
        "frozen parameter 0.weight, which the snapshot '" + bare.string() + "' does not hold, ";
    CHECK(error.message().starts_with(begin));
    return error.message().substr(begin.size());
  };
  CHECK(message_with(small_trainer(other).state()) ==
        "has other values than the one that was trained on: is it of another base model?");
  auto wide = training;
  wide.model.types.width = 6;
  CHECK(message_with(small_trainer(wide).state()) == "is F32[3, 6], but in the snapshot F32[3, 5]");
  CHECK(message_with({}) == "is missing");
}

}  // namespace snapshot_test
