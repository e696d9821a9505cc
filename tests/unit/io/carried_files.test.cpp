// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/io/carried_files.hpp>

#include <support/contains.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace carried_files_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("files beside the weights are listed, weights and folders are not") {
  TemporaryFolder const folder;
  std::vector<std::string> const carried{"LICENSE",
                                         "chat_template.jinja",
                                         "config.json",
                                         "generation_config.json",
                                         "merges.txt",
                                         "modeling_own.py",
                                         "sentencepiece.bpe.bin",
                                         "tokenizer.json",
                                         "tokenizer.model",
                                         "training_args.bin"};
  for (auto const& name : carried) {
    put_file(folder.path / name, name);
  }
  for (char const* name : {"model.safetensors",
                           "model-00001-of-00002.safetensors",
                           "model.safetensors.index.json",
                           "model.safetensors.0.partial",
                           "pytorch_model.bin",
                           "pytorch_model-00001-of-00002.bin",
                           "pytorch_model.bin.index.json",
                           "adapter_model.bin",
                           "consolidated.00.pth",
                           "tf_model.h5",
                           "flax_model.msgpack",
                           "model.gguf",
                           ".gitattributes"}) {
    put_file(folder.path / name, "");
  }
  std::filesystem::create_directory(folder.path / "original");
  std::filesystem::create_symlink("nowhere", folder.path / "broken.json");
  CHECK(files_beside_weights(folder.path) == carried);
  CHECK(error_of([&] { (void)files_beside_weights(folder.path / "none"); }).code() ==
        std::errc::no_such_file_or_directory);
}

TEST_CASE("files are copied byte for byte, links as what they lead to, and none is overwritten") {
  TemporaryFolder const folder;
  auto const from = folder.path / "from";
  auto const to = folder.path / "to";
  std::filesystem::create_directories(from);
  std::filesystem::create_directories(to);
  std::string large(3'000'001, '\0');
  for (std::size_t i = 0; i < large.size(); ++i) {
    large[i] = static_cast<char>(i * 31 + i / 997);
  }
  put_file(from / "tokenizer.json", large);
  put_file(from / "empty", "");
  put_file(from / "config.json", "old");
  put_file(folder.path / "blob", "linked");
  std::filesystem::create_symlink("../blob", from / "link.json");
  put_file(to / "config.json", "new");
  copy_files(from, to, files_beside_weights(from));
  CHECK(content_of(to / "tokenizer.json") == large);
  CHECK(std::filesystem::file_size(to / "empty") == 0);
  CHECK(content_of(to / "config.json") == "new");
  CHECK(content_of(to / "link.json") == "linked");
  CHECK_FALSE(std::filesystem::is_symlink(to / "link.json"));
  CHECK(files_beside_weights(to) == files_beside_weights(from));
}

TEST_CASE("a file that cannot be copied is named") {
  TemporaryFolder const folder;
  put_file(folder.path / "a", "x");
  auto const copy = [&](std::string const& to, std::string const& name) {
    std::vector<std::string> const names{name};
    return error_of([&] { copy_files(folder.path, folder.path / to, names); });
  };
  CHECK(contains(copy("none", "a").message(), "none/a"));
  CHECK(contains(copy("none", "b").message(), "b'"));
  CHECK(copy("none", "b").code() == std::errc::no_such_file_or_directory);
}

}  // namespace carried_files_test
