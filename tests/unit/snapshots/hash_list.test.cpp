// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <roundpipe/snapshots/hash_list.hpp>

#include <roundpipe/io/file.hpp>
#include <support/error_of.hpp>
#include <support/stored_files.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace hash_list_test {

using namespace roundpipe;
using namespace roundpipe::test;

TEST_CASE("a hash is that of xxHash, whatever the pieces, of memory and of a file") {
  // As `xxh128sum` prints them.
  CHECK(content_hash(bytes_of("")) == "99aa06d3014798d86001c324468d497f");
  CHECK(content_hash(bytes_of("roundpipe\n")) == "93e25cbf02a7e0c330c3129c04dcc432");
  TemporaryFolder const folder;
  for (std::size_t const size : {1, 1000, 1 << 20, (1 << 21) + 17}) {
    CAPTURE(size);
    std::string text(size, 'a');
    for (std::size_t i = 0; i < size; ++i) {
      text[i] = static_cast<char>(i * i);
    }
    auto const whole = content_hash(bytes_of(text));
    CHECK(is_content_hash(whole));
    ContentHash hash;
    hash.add(bytes_of(text).first(size / 3));
    hash.add(bytes_of(text).subspan(size / 3));
    CHECK(hash.text() == whole);
    CHECK(content_hash(File::open(put_file(folder.path / "file", text))) == whole);
    text[size / 2] ^= 1;
    CHECK(content_hash(bytes_of(text)) != whole);
  }
  // In parts: the hashes of the parts, hashed.
  std::string text(hash_part_bytes + 100, 'a');
  text[hash_part_bytes] = 'b';
  auto const parts = content_hash(bytes_of(text).first(hash_part_bytes)) +
                     content_hash(bytes_of(text).subspan(hash_part_bytes));
  CHECK(hash_in_parts(bytes_of(text)) == content_hash(bytes_of(parts)));
  for (auto const size : {std::size_t{0}, std::size_t{7}, text.size()}) {
    auto const file = put_file(folder.path / "file", text.substr(0, size));
    std::vector const files{file, put_file(folder.path / "other", "other")};
    for (std::size_t const ranks : {1, 2, 3}) {
      for (bool const in_parts : {false, true}) {
        std::vector<std::string> shares;
        for (std::size_t r = 0; r < ranks; ++r) {
          shares.push_back(hashes_of_share(files, in_parts, r, ranks));
          // No rank reads more than its share: two parts, or two files.
          CHECK(shares.back().size() <= 2 + 32 * (ranks == 1 ? 3 : 2));
        }
        auto const of = [&](auto bytes) {
          return in_parts ? hash_in_parts(bytes) : content_hash(bytes);
        };
        CHECK(joined_hash(shares, 0, in_parts) == of(bytes_of(text).first(size)));
        CHECK(joined_hash(shares, 1, in_parts) == of(bytes_of("other")));
      }
    }
  }
}

TEST_CASE("a list of hashes is read as it was written, and strictly") {
  std::string const a(32, 'a');
  std::string const f(32, 'f');
  HashList const hashes{
      {"snapshot.json", a}, {"model.safetensors", f}, {"optimizer.safetensors", a}};
  auto const text = hash_list_text(hashes);
  CHECK(text ==
        f + "  model.safetensors\n" + a + "  optimizer.safetensors\n" + a + "  snapshot.json\n");
  CHECK(parse_hash_list(bytes_of(text), "list") == hashes);
  CHECK(parse_hash_list(bytes_of(text + f + "  visible.safetensors\n"), "list").size() == 4);

  auto const message_of = [](std::string const& bad) {
    auto const error = error_of([&] { (void)parse_hash_list(bytes_of(bad), "list"); });
    CHECK(error.code() == Errc::bad_file);
    return error.message();
  };
  CHECK(message_of("") == "'list': the list has no hash of 'snapshot.json'");
  CHECK(message_of(a + "  snapshot.json\n") ==
        "'list': the list has no hash of 'model.safetensors'");
  CHECK(message_of(text + a + "  snapshot.json\n") ==
        "'list': line 4 names 'snapshot.json' a second time");
  for (auto const& line : {a + "  ../model.safetensors",
                           a + "  ",
                           a + " *snapshot.json",
                           a.substr(1) + "  snapshot.json",
                           'A' + a.substr(1) + "  snapshot.json",
                           'g' + a.substr(1) + "  snapshot.json",
                           std::string(),
                           a}) {
    CHECK(message_of(line + '\n') ==
          "'list': line 1 is '" + line + "', not the hash of a file of a snapshot");
  }
  CHECK(message_of(a + "  snapshot.json") ==
        "'list': line 1 is '" + a + "  snapshot.json', not the hash of a file of a snapshot");
}

}  // namespace hash_list_test
