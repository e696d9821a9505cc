// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief A snapshot on the disk as a state that a training goes on from.

#include <roundpipe/concepts/process_group.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/core/host_tensor.hpp>
#include <roundpipe/core/tensor.hpp>
#include <roundpipe/data/dataset.hpp>
#include <roundpipe/hosts/agree.hpp>
#include <roundpipe/hosts/any_process_group.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/file_error.hpp>
#include <roundpipe/io/safetensors.hpp>
#include <roundpipe/io/tensor_info.hpp>
#include <roundpipe/runtime/state/training_state.hpp>
#include <roundpipe/snapshots/content_hash.hpp>
#include <roundpipe/snapshots/hash_list.hpp>
#include <roundpipe/snapshots/snapshot_manifest.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace roundpipe {

/// \brief Maps the files of a snapshot, which its constructor checks.
///
/// ```cpp
/// Snapshot const snapshot(*newest_snapshot("out/snapshots"));
/// pipeline.restore(snapshot.state());
/// ```
///
/// The model, the optimizer, the seed and the staleness must be those of the training that was
/// saved; devices, stages, budgets and threads may be others. `restore` copies each tensor from its
/// mapped file, so the model is in memory once, beside pages that the system takes back when it
/// needs them. Movable.
class Snapshot {
 public:
  /// Reads all files of the snapshot \p folder once, and compares their sizes and hashes with those
  /// that were written, before it uses them. Whoever changes the files later gets other tensors, or
  /// a signal (SIGBUS).
  ///
  /// With several ranks in \p group it is an operation of all of them, on the channel \c control;
  /// each needs all of the folder, but reads an equal share of it for the hashes: of the parts of
  /// files, or whole files of a snapshot that one process has written.
  /// \throws Error (bad_file), whose message names file and field, when a file is damaged or does
  ///         not belong to the others; with the system's code when one is missing or unreadable;
  ///         on all ranks what one throws, see \ref agree; (invalid_argument) when ranks load
  ///         different snapshots.
  explicit Snapshot(std::filesystem::path folder, AnyProcessGroup group = {})
      : path_(std::move(folder)) {
    HashList list;
    auto const all = [&](auto const& f) { return agree(group, GroupChannel::control, f); };
    auto const lists = all([&] {
      list = read_manifest();
      return hash_list_text(list);
    });
    for (std::size_t r = 0; r < lists.size(); ++r) {
      if (lists[r] != lists[0]) {
        throw Error(Errc::invalid_argument,
                    "ranks load different snapshots: rank " + std::to_string(r) +
                        " another one than rank 0");
      }
    }
    std::vector<std::filesystem::path> paths;
    for (auto const& [name, bytes] : manifest_.file_bytes) {
      paths.push_back(path_ / name);
    }
    auto const shares =
        all([&] { return hashes_of_share(paths, in_parts_, group.rank(), group.size()); });
    std::size_t number = 0;
    for (auto const& [name, bytes] : manifest_.file_bytes) {
      require_hash(name, list, joined_hash(shares, number++, in_parts_));
    }
    (void)all([&] {
      for (auto const& [name, bytes] : manifest_.file_bytes) {
        files_.emplace(name, SafetensorsFile(path_ / name));
      }
      view_tensors();
      return std::string();
    });
  }

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  [[nodiscard]] TrainingPosition const& position() const noexcept { return state_.position; }
  /// The training's position in its data, if it was given one.
  [[nodiscard]] std::optional<DataPosition> const& data() const noexcept {
    return manifest_.extras.data;
  }
  /// What the program added.
  [[nodiscard]] nlohmann::json const& program() const noexcept { return manifest_.extras.program; }
  [[nodiscard]] std::vector<SnapshotParameter> const& parameters() const noexcept {
    return manifest_.parameters;
  }

  /// The state; its tensors view the mapped files, and last as long as this.
  /// \throws Error (invalid_argument) when the snapshot was written without its frozen weights.
  [[nodiscard]] TrainingState state() const {
    for (auto const& parameter : manifest_.parameters) {
      if (parameter.base) {
        throw Error(Errc::invalid_argument,
                    "the snapshot " + path_in_quotes(path_) +
                        " does not hold the frozen parameter " + parameter.name +
                        "; give Snapshot::state the state of a trainer that has it");
      }
    }
    return state_;
  }

  /// The same for a snapshot that was written without its frozen weights: these are views of those
  /// of \p own, the state of the trainer that will be restored, which has loaded them from where
  /// they came from.
  /// \throws Error (invalid_argument) when \p own lacks such a parameter, or has one of another
  ///         type or shape, or with other values, as of another base model.
  [[nodiscard]] TrainingState state(TrainingState const& own) const {
    std::map<std::string_view, ParameterState const*> known;
    for (auto const& parameter : own.parameters) {
      known.emplace(parameter.name, &parameter);
    }
    auto state = state_;
    for (std::size_t i = 0; i < state.parameters.size(); ++i) {
      if (auto const& base = manifest_.parameters[i].base) {
        auto const found = known.find(base->tensor.name);
        require_base(*base, found == known.end() ? nullptr : found->second);
        state.parameters[i].weights = found->second->weights;
      }
    }
    return state;
  }

 private:
  static constexpr Bytes most_hash_list_bytes = 4_KiB;

  [[nodiscard]] std::string_view hash_list_name() const noexcept {
    return in_parts_ ? snapshot_files::part_hashes : snapshot_files::hashes;
  }

  /// Reads the manifest. \returns the hashes of all files, which are there, and as large as it
  /// says.
  [[nodiscard]] HashList read_manifest() {
    using namespace snapshot_files;
    in_parts_ = std::filesystem::exists(path_ / part_hashes);
    auto const hash_file = path_ / hash_list_name();
    auto list = parse_hash_list(read_file(hash_file, most_hash_list_bytes), hash_file.string());
    auto const manifest_file = path_ / manifest;
    auto const text = read_file(manifest_file, detail::manifest_limits.bytes);
    require_hash(manifest, list, in_parts_ ? hash_in_parts(text) : content_hash(text));
    manifest_ = parse_snapshot_manifest(text, manifest_file.string());
    require_files(list);
    for (auto const& [name, bytes] : manifest_.file_bytes) {
      auto const file = File::open(path_ / name);
      if (auto const size = file.size(); size != bytes) {
        throw bad_file(file.path().string(),
                       "the file",
                       "has " + std::to_string(size) +
                           " bytes, but the snapshot was written with " + std::to_string(bytes));
      }
    }
    return list;
  }

  void require_hash(std::string_view name, HashList const& list, std::string const& actual) const {
    auto const& wanted = list.find(name)->second;
    if (actual != wanted) {
      throw bad_file((path_ / name).string(),
                     "the content",
                     "is damaged: its hash is " + actual + ", but " + in_quotes(hash_list_name()) +
                         " says " + wanted);
    }
  }

  /// The manifest and the list of hashes must tell of the same files, those of the position.
  void require_files(HashList const& list) const {
    using namespace snapshot_files;
    auto const refuse = [&](std::string const& fault) {
      throw bad_file((path_ / manifest).string(), "files", fault);
    };
    for (auto const& [name, bytes] : manifest_.file_bytes) {
      if (name == manifest || !list.contains(name)) {
        refuse("name " + in_quotes(name) + ", of which " + in_quotes(hash_list_name()) +
               " has no hash");
      }
    }
    for (auto const& [name, hash] : list) {
      if (name != manifest && !manifest_.file_bytes.contains(name)) {
        refuse("do not name " + in_quotes(name));
      }
    }
  }

  /// The tensor \p name of \p file, and counts it.
  [[nodiscard]] HostTensor view(std::string_view file,
                                std::string const& name,
                                std::size_t& count) const {
    auto const found = files_.find(file);
    if (found == files_.end()) {
      throw bad_file((path_ / snapshot_files::manifest).string(),
                     "files",
                     "do not name " + in_quotes(file) + ", which the position asks for");
    }
    auto const tensor = found->second.at(name);
    auto const& info = tensor.info();
    if (!info.type() || info.extents.size() > Shape::max_rank) {
      throw bad_file(found->second.path().string(),
                     "tensor " + in_quotes(name),
                     "is " + to_string(info) + ", which no parameter is");
    }
    ++count;
    return {tensor.bytes(), info.shape(), *info.type()};
  }

  void view_tensors() {
    using namespace snapshot_files;
    state_.position = manifest_.position;
    std::map<std::string_view, std::size_t> counts;
    for (auto const& parameter : manifest_.parameters) {
      auto const& name = parameter.name;
      auto& viewed = state_.parameters.emplace_back();
      viewed.name = name;
      viewed.frozen = parameter.frozen;
      if (parameter.base) {
        continue;
      }
      viewed.weights = view(weights, parameter.tensor, counts[weights]);
      for (std::size_t s = 0; s < parameter.states; ++s) {
        viewed.optimizer.push_back(view(optimizer, state_tensor_name(name, s), counts[optimizer]));
      }
      if (!parameter.frozen && state_.position.is_stale()) {
        viewed.visible = view(visible, name, counts[visible]);
      }
    }
    for (auto const& [name, file] : files_) {
      if (file.size() != counts[name]) {
        throw bad_file(file.path().string(),
                       "the header",
                       "tells of " + std::to_string(file.size()) +
                           " tensors, but the parameters of " + in_quotes(manifest) + " have " +
                           std::to_string(counts[name]));
      }
    }
  }

  void require_base(BaseParameter const& base, ParameterState const* own) const {
    std::string fault;
    if (own == nullptr) {
      fault = "is missing";
    } else {
      auto const& weights = own->weights;
      auto const info = tensor_info({base.tensor.name, weights.shape, weights.dtype});
      if (info != base.tensor) {
        fault = "is " + to_string(info) + ", but in the snapshot " + to_string(base.tensor);
      } else if (content_hash(weights.bytes) != base.hash) {
        fault = "has other values than the one that was trained on: is it of another base model?";
      }
    }
    if (!fault.empty()) {
      throw Error(Errc::invalid_argument,
                  "frozen parameter " + base.tensor.name + ", which the snapshot " +
                      path_in_quotes(path_) + " does not hold, " + fault);
    }
  }

  std::filesystem::path path_;
  bool in_parts_ = false;  // the hashes, as several ranks write them
  SnapshotManifest manifest_;
  std::map<std::string, SafetensorsFile, std::less<>> files_;
  TrainingState state_;
};

}  // namespace roundpipe
