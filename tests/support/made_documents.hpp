// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Tokenized documents that a test knows by heart.

#include <roundpipe/data/dataset.hpp>
#include <roundpipe/io/token_arrays.hpp>
#include <roundpipe/io/token_documents.hpp>
#include <roundpipe/io/token_file_writer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

namespace roundpipe::test {

using Tokens = std::vector<std::int32_t>;

/// A document: its tokens, and their labels as files have them.
struct MadeDocument {
  Tokens tokens;
  Tokens labels;  // none: the tokens
};

/// Documents of \p sizes tokens. Token i of all documents is \p first + i, so that a test can tell
/// where each comes from. With \p masked, every third label is ignored.
inline std::vector<MadeDocument> made_documents(std::vector<std::size_t> const& sizes,
                                                std::int32_t first = 0,
                                                bool masked = false) {
  std::vector<MadeDocument> documents;
  auto next = first;
  for (auto const size : sizes) {
    auto& document = documents.emplace_back();
    for (std::size_t i = 0; i < size; ++i, ++next) {
      document.tokens.push_back(next);
      if (masked) {
        document.labels.push_back(next % 3 == 0 ? ignored_label : next);
      }
    }
  }
  return documents;
}

inline TokenArrays arrays_of(std::vector<MadeDocument> const& documents,
                             std::string const& name = "made") {
  TokenArrays arrays(name);
  for (auto const& document : documents) {
    arrays.add(document.tokens, document.labels);
  }
  return arrays;
}

inline DataSource source_of(std::vector<MadeDocument> const& documents,
                            double weight = 1,
                            std::string const& name = "made") {
  return data_source(arrays_of(documents, name), weight);
}

inline void write_token_file(std::filesystem::path const& path,
                             std::vector<MadeDocument> const& documents,
                             std::uint64_t vocabulary) {
  TokenFileWriter writer(path, vocabulary);
  for (auto const& document : documents) {
    writer.add(document.tokens, document.labels);
  }
  writer.finish();
}

/// What \p view holds.
inline std::vector<MadeDocument> documents_of(TokenDocuments const& view) {
  std::vector<MadeDocument> documents;
  for (std::uint64_t d = 0; d < view.documents(); ++d) {
    auto const range = view.document(d);
    MadeDocument document{Tokens(range.size()), Tokens(range.size())};
    view.copy_tokens(range.first, document.tokens);
    view.copy_labels(range.first, document.labels);
    documents.push_back(document);
  }
  return documents;
}

}  // namespace roundpipe::test
