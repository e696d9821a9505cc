// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "byte_tokens.hpp"

#include <common/command_line.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/io/file.hpp>
#include <roundpipe/io/json.hpp>
#include <roundpipe/io/token_file_writer.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>

namespace make_tiny_checkpoint {

namespace {

using Json = nlohmann::ordered_json;

/// \p code, below 2^11, as UTF-8.
std::string utf8(unsigned code) {
  if (code < 0x80) {
    return {static_cast<char>(code)};
  }
  return {static_cast<char>(0xC0U | code >> 6U), static_cast<char>(0x80U | (code & 0x3FU))};
}

}  // namespace

std::string byte_tokenizer_json() {
  // Byte-level tokenizers write each byte as a character that is visible: printable ones of Latin-1
  // as themselves, the others, in order, as those from 256 on.
  Json vocabulary = Json::object();
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bool const visible = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    vocabulary[utf8(visible ? byte : next++)] = byte;
  }
  Json const bytes = {{"type", "ByteLevel"},
                      {"add_prefix_space", false},
                      {"trim_offsets", true},
                      {"use_regex", false}};
  Json const json = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", Json::array()},
                     {"normalizer", nullptr},
                     {"pre_tokenizer", bytes},
                     {"post_processor", nullptr},
                     {"decoder", bytes},
                     {"model",
                      {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", nullptr},
                       {"end_of_word_suffix", nullptr},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", false},
                       {"vocab", vocabulary},
                       {"merges", Json::array()}}}};
  return roundpipe::json_text(json, 1);
}

std::uint64_t write_byte_tokens(std::vector<std::string> const& paths,
                                std::filesystem::path const& to) {
  roundpipe::TokenFileWriter writer(to, 256);
  std::vector<std::int32_t> tokens;
  for (auto const& path : paths) {
    constexpr roundpipe::Bytes most = roundpipe::Bytes{1} << 30U;
    tokens.clear();
    for (auto const byte : roundpipe::read_file(path, most)) {
      tokens.push_back(std::to_integer<std::int32_t>(byte));
    }
    if (tokens.empty()) {
      examples::refuse("--text: '" + path + "' is empty");
    }
    writer.add(tokens);
  }
  writer.finish();
  return writer.tokens();
}

}  // namespace make_tiny_checkpoint
