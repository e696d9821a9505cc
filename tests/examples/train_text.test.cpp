// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <common/output_file.hpp>
#include <common/pick.hpp>
#include <common/precision.hpp>
#include <common/progress.hpp>
#include <roundpipe/core/error.hpp>
#include <roundpipe/runtime/evaluation.hpp>
#include <support/temporary_folder.hpp>
#include <train_text/corpus.hpp>
#include <train_text/entropy.hpp>
#include <train_text/options.hpp>
#include <train_text/sampling.hpp>
#include <train_text/windows.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace train_text_test {
namespace {

using namespace train_text;
using examples::pick;
using roundpipe::Error;
using roundpipe::test::TemporaryFolder;

double plain_entropy(std::vector<double> const& probabilities) {
  double nats = 0;
  for (auto const p : probabilities) {
    nats -= p > 0 ? p * std::log(p) : 0;
  }
  return nats;
}

void write(std::filesystem::path const& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string content(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Options parse(std::vector<char const*> arguments) {
  arguments.insert(arguments.begin(), "train_text");
  return parse_options(static_cast<int>(arguments.size()), arguments.data()).value();
}

}  // namespace

// Entropy

TEST_CASE("The unigram entropy of equally frequent bytes is the logarithm of their number") {
  ByteCounts counts;
  CHECK(counts.unigram_entropy() == 0);
  CHECK(counts.bigram_entropy() == 0);
  counts.add("aaaa");
  CHECK(counts.unigram_entropy() == 0);
  counts.add("bbbb");
  CHECK(counts.unigram_entropy() == doctest::Approx(std::log(2.0)));
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
  }
  ByteCounts even;
  even.add(all);
  CHECK(even.unigram_entropy() == doctest::Approx(std::log(256.0)));
  CHECK(even.bigram_entropy() == doctest::Approx(0.0));  // each byte has one successor
}

TEST_CASE("The bigram entropy averages the entropy of each byte's successors") {
  // Pairs: aa aa ab ba aa ab bc: after a (5): a 3, b 2; after b (2): a 1, c 1.
  ByteCounts counts;
  counts.add("aaabaabc");
  CHECK(counts.unigram_entropy() == doctest::Approx(plain_entropy({5 / 8., 2 / 8., 1 / 8.})));
  CHECK(counts.bigram_entropy() == doctest::Approx(5 / 7. * plain_entropy({3 / 5., 2 / 5.}) +
                                                   2 / 7. * plain_entropy({1 / 2., 1 / 2.})));
}

TEST_CASE("No pair reaches from one run of text into the next") {
  ByteCounts apart;
  apart.add("ab");
  apart.add("ac");  // adds no pair "ba"
  CHECK(apart.bigram_entropy() == doctest::Approx(std::log(2.0)));
  ByteCounts joined;
  joined.add("abac");
  CHECK(joined.bigram_entropy() == doctest::Approx(2 / 3. * std::log(2.0)));
}

TEST_CASE("Random bytes have about the entropies of their distribution") {
  std::mt19937 random(3);
  std::string text;
  for (int i = 0; i < 1 << 20; ++i) {
    text.push_back("abcd"[random() % 4]);
  }
  ByteCounts counts;
  counts.add(text);
  CHECK(counts.unigram_entropy() == doctest::Approx(std::log(4.0)).epsilon(1e-3));
  CHECK(counts.bigram_entropy() == doctest::Approx(std::log(4.0)).epsilon(1e-3));
}

// The split

TEST_CASE("Training and held-out ranges alternate, cover the text, and hold a window each") {
  for (std::size_t const window : {2, 65, 129, 4097, 9000}) {
    for (std::size_t const size : {2 * window,
                                   2 * window + 1,
                                   5 * window,
                                   std::size_t{40000},
                                   std::size_t{81920},
                                   std::size_t{1234567}}) {
      if (size < 2 * window) {
        continue;
      }
      auto const split = split_text(size, window);
      REQUIRE(split.training.size() == split.validation.size());
      std::size_t next = 0;
      for (std::size_t i = 0; i < split.training.size(); ++i) {
        CHECK(split.training[i].first == next);
        CHECK(split.training[i].size() >= window);
        CHECK(split.validation[i].first == split.training[i].end);
        CHECK(split.validation[i].size() >= window);
        next = split.validation[i].end;
      }
      CHECK(next == size);
    }
  }
}

TEST_CASE("Of a long text a tenth is held out, in pieces of about 4 KiB") {
  auto const split = split_text(10 << 20, 129);
  std::size_t held_out = 0;
  for (auto const& range : split.validation) {
    held_out += range.size();
    CHECK(range.size() >= 4096);
    CHECK(range.size() < 4200);
  }
  CHECK(static_cast<double>(held_out) / (10 << 20) == doctest::Approx(0.1).epsilon(1e-3));
}

TEST_CASE("A text shorter than two windows is refused") {
  CHECK_THROWS_AS(static_cast<void>(split_text(0, 10)), Error);
  CHECK_THROWS_AS(static_cast<void>(split_text(19, 10)), Error);
  CHECK_NOTHROW(static_cast<void>(split_text(20, 10)));
}

// Windows

TEST_CASE("Every drawn training window lies within a training range") {
  std::size_t const window = 100;
  auto const split = split_text(50000, window);
  WindowDraw const draw(split.training, window, 1);
  for (std::uint64_t step = 0; step < 200; ++step) {
    for (auto const start : draw.starts(step, 16)) {
      CHECK(std::any_of(split.training.begin(), split.training.end(), [&](auto const& range) {
        return range.first <= start && start + window <= range.end;
      }));
    }
  }
}

TEST_CASE("Every place for a window is drawn, and about equally often") {
  std::vector<TextRange> const ranges{{0, 10}, {20, 24}, {30, 35}};  // 7 + 1 + 2 places for 4 bytes
  WindowDraw const draw(ranges, 4, 5);
  std::vector<std::size_t> counts(40);
  for (auto const start : draw.starts(0, 100000)) {
    ++counts[start];
  }
  for (std::size_t place = 0; place < counts.size(); ++place) {
    if (place < 7 || place == 20 || place == 30 || place == 31) {
      CHECK(static_cast<double>(counts[place]) == doctest::Approx(10000).epsilon(0.05));
    } else {
      CHECK(counts[place] == 0);
    }
  }
}

TEST_CASE("Draws depend on seed and step alone") {
  auto const split = split_text(50000, 100);
  WindowDraw const one(split.training, 100, 1);
  WindowDraw const same(split.training, 100, 1);
  WindowDraw const other(split.training, 100, 2);
  CHECK(one.starts(7, 16) == same.starts(7, 16));
  CHECK(one.starts(7, 16) != one.starts(8, 16));
  CHECK(one.starts(7, 16) != other.starts(7, 16));
  auto const few = one.starts(7, 4);
  auto const many = one.starts(7, 16);
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
}

TEST_CASE("Validation windows lie side by side in held-out ranges, at most as many as allowed") {
  std::size_t const window = 100;
  auto const split = split_text(500000, window);
  auto const all = validation_starts(split.validation, window, 100000);
  CHECK(all.size() == 12 * (split.validation.front().size() / window));
  for (std::size_t const limit : {1, 7, 100}) {
    auto const some = validation_starts(split.validation, window, limit);
    CHECK(some.size() == limit);
    CHECK(std::set<std::size_t>(some.begin(), some.end()).size() == limit);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK((i == 0 || all[i - 1] + window <= all[i]));
    CHECK(std::any_of(split.validation.begin(), split.validation.end(), [&](auto const& range) {
      return range.first <= all[i] && all[i] + window <= range.end;
    }));
  }
}

TEST_CASE("A batch's labels are the bytes after its tokens, micro-batch by micro-batch") {
  std::string const text = "abcdefghij\xff";
  WindowBatch const windows(text, {0, 4, 7}, 2, 3);
  auto const batch = windows.view();
  CHECK(windows.size() == 9);
  REQUIRE(batch.size() == 2);
  CHECK(batch.shape(0) == roundpipe::BatchShape{2, 3});
  CHECK(batch.shape(1) == roundpipe::BatchShape{1, 3});
  auto const read = [&](char const* name) {
    auto const bytes = batch.bytes(name, roundpipe::DType::i32);
    auto const* const first = reinterpret_cast<std::int32_t const*>(bytes.data());
    return std::vector<std::int32_t>(first, first + bytes.size() / 4);
  };
  CHECK(read("tokens") == std::vector<std::int32_t>{'a', 'b', 'c', 'e', 'f', 'g', 'h', 'i', 'j'});
  CHECK(read("labels") == std::vector<std::int32_t>{'b', 'c', 'd', 'f', 'g', 'h', 'i', 'j', 255});
}

// Files

TEST_CASE("A folder's text files are taken in order; hidden, binary and empty ones are not") {
  TemporaryFolder const folder;
  write(folder.path / "b.txt", "two ");
  write(folder.path / "a" / "deep" / "z.txt", "one ");
  write(folder.path / "c", "three");
  write(folder.path / "empty.txt", "");
  write(folder.path / "binary",
        std::string_view("\x7f"
                         "ELF\0\0",
                         6));
  write(folder.path / ".hidden" / "x.txt", "no");
  write(folder.path / ".hidden.txt", "no");
  Corpus corpus;
  corpus.add(folder.path);
  CHECK(corpus.text == "one two three");
  CHECK(corpus.files == 3);
  corpus.add(folder.path / "binary");  // a named file is always taken
  CHECK(corpus.text.size() == 13 + 6);
}

TEST_CASE("Missing and empty files, and folders without text, are errors that name them") {
  TemporaryFolder const folder;
  write(folder.path / "empty.txt", "");
  Corpus corpus;
  for (auto const& path : {folder.path / "missing", folder.path / "empty.txt", folder.path}) {
    try {
      corpus.add(path);
      FAIL("no error for " << path);
    } catch (Error const& error) {
      CHECK(error.message().find(path.string()) != std::string::npos);
    }
  }
  CHECK_THROWS_AS(corpus.add_project(folder.path), Error);
}

TEST_CASE("The project's own text is its sources and docs") {
  TemporaryFolder const folder;
  write(folder.path / "include" / "a" / "b.hpp", "include ");
  write(folder.path / "examples" / "c.cpp", "examples ");
  write(folder.path / "examples" / "c.png", "no");
  write(folder.path / "build" / "d.cpp", "no");
  write(folder.path / "README.md", "readme");
  Corpus corpus;
  corpus.add_project(folder.path);
  CHECK(corpus.text == "include examples readme");
}

TEST_CASE("An output file appears when it is committed, and replaces an older one") {
  TemporaryFolder const folder;
  auto const path = folder.path / "report.json";
  {
    examples::OutputFile file(path.string());
    file.stream() << "first";
  }
  CHECK(std::filesystem::is_empty(folder.path));
  for (auto const* text : {"second", "3"}) {
    examples::OutputFile file(path.string());
    file.stream() << text;
    CHECK((text == std::string("second") || content(path) == "second"));
    file.commit();
    CHECK(content(path) == text);
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path), {}) == 1);
}

TEST_CASE("An output file keeps the link that names it") {
  TemporaryFolder const folder;
  write(folder.path / "real" / "file", "old");
  std::filesystem::create_symlink(folder.path / "real" / "file", folder.path / "link");
  examples::OutputFile file((folder.path / "link").string());
  file.stream() << "new";
  file.commit();
  CHECK(std::filesystem::is_symlink(folder.path / "link"));
  CHECK(content(folder.path / "real" / "file") == "new");
}

TEST_CASE("Paths that cannot be written are refused at once; devices are written directly") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(examples::OutputFile((folder.path / "missing" / "file").string()), Error);
  CHECK_THROWS_AS(examples::OutputFile{folder.path.string()}, Error);
  examples::OutputFile null("/dev/null");
  null.stream() << "gone";
  null.commit();
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

// Sampling

TEST_CASE("Temperature 0 picks the first largest logit") {
  std::vector<float> const logits{-1, 3, 2, 3};
  CHECK(pick(logits, {}, 0.99) == 1);
}

TEST_CASE("Picks have the probabilities of the softmax, and never an impossible outcome") {
  auto const minus_infinity = -std::numeric_limits<float>::infinity();
  std::vector<float> const logits{minus_infinity, 1000, 999, minus_infinity, 998, minus_infinity};
  for (double const temperature : {0.5, 1.0, 2.0}) {
    double const a = 1;
    double const b = std::exp(-1 / temperature);
    double const c = std::exp(-2 / temperature);
    std::vector<double> counts(logits.size());
    constexpr int n = 10000;
    for (int i = 0; i < n; ++i) {
      counts[pick(logits, {.temperature = temperature}, i / static_cast<double>(n))] += 1.0 / n;
    }
    CHECK(counts[1] == doctest::Approx(a / (a + b + c)).epsilon(1e-2));
    CHECK(counts[2] == doctest::Approx(b / (a + b + c)).epsilon(1e-2));
    CHECK(counts[4] == doctest::Approx(c / (a + b + c)).epsilon(1e-2));
    CHECK(counts[0] + counts[3] + counts[5] == 0);
  }
  CHECK(pick(logits, {.temperature = 1}, std::nextafter(1.0, 0.0)) == 4);
}

namespace {

/// Always predicts the byte after the last one it sees.
struct Counter {
  roundpipe::Evaluation evaluate(roundpipe::Batch const& batch) {
    auto const bytes = batch.bytes("tokens", roundpipe::DType::i32);
    auto const* const tokens = reinterpret_cast<std::int32_t const*>(bytes.data());
    auto const count = static_cast<std::size_t>(batch.shape(0).positions());
    lengths.push_back(count);
    std::vector<float> logits(256, 0.0F);
    logits[static_cast<std::size_t>(tokens[count - 1] + 1)] = 1000;
    roundpipe::Evaluation evaluation;
    evaluation.tables.push_back({{"last_logits", {1, 256}, roundpipe::DType::f32}});
    evaluation.results.emplace_back(1024);
    std::copy_n(
        reinterpret_cast<std::byte const*>(logits.data()), 1024, evaluation.results.back().begin());
    return evaluation;
  }
  std::vector<std::size_t> lengths;
};

}  // namespace

TEST_CASE("A continuation feeds each byte back, seeing at most one context") {
  Counter counter;
  CHECK(continue_text(counter, "xya", 5, 4, 0.8, 1) == "bcdef");
  CHECK(counter.lengths == std::vector<std::size_t>{3, 4, 4, 4, 4});
}

TEST_CASE("A byte that a terminal cannot show becomes a question mark") {
  CHECK(printable("a\tb\n\x1b[31m\xc3\xa4\r") == "a\tb\n?[31m???");
}

// Options

TEST_CASE("Options have defaults that are checked, and sizes with units") {
  auto const o = parse({});
  CHECK(o.devices == 4);
  CHECK(o.data.empty());
  CHECK(o.tied);
  CHECK(parse({"--untied"}).tied == false);
  CHECK(parse({"--tied"}).tied);
  CHECK(parse({"--data", "a", "b", "--steps", "7"}).data == std::vector<std::string>{"a", "b"});
  CHECK(parse({"--device-memory", "1.5MiB"}).device_memory == 3 << 19);
  CHECK(parse({"--batch", "24", "--micro-batches", "2", "--rounds", "3"}).rows() == 4);
  CHECK(parse({"--optimizer", "sgd"}).highest_rate() != o.highest_rate());
  CHECK(parse({"--lr", "0.25"}).highest_rate() == 0.25);
}

TEST_CASE("Options that make no training are refused, by name") {
  struct Case {
    std::vector<char const*> arguments;
    char const* named;
  };
  for (auto const& [arguments, named] :
       std::vector<Case>{{{"--layers", "0"}, "--layers"},
                         {{"--hidden", "-128"}, "--hidden"},
                         {{"--context", "0"}, "--context"},
                         {{"--batch", "0"}, "--batch"},
                         {{"--micro-batches", "0"}, "--micro-batches"},
                         {{"--rounds", "-1"}, "--rounds"},
                         {{"--steps", "0"}, "--steps"},
                         {{"--devices", "0"}, "--devices"},
                         {{"--layers", "3000000000"}, "--layers"},
                         {{"--heads", "3"}, "--heads"},
                         {{"--kv-heads", "3"}, "--kv-heads"},
                         {{"--hidden", "12", "--heads", "4", "--kv-heads", "1"}, "even"},
                         {{"--batch", "10"}, "--batch"},
                         {{"--rounds", "5"}, "--batch"},
                         {{"--seconds", "-1"}, "--seconds"},
                         {{"--lr", "0"}, "--lr"},
                         {{"--lr", "nan"}, "--lr"},
                         {{"--dropout", "1"}, "--dropout"},
                         {{"--clip", "-0.5"}, "--clip"},
                         {{"--link-gbps", "-2"}, "--link-gbps"},
                         {{"--device-memory", "0"}, "--device-memory"},
                         {{"--device-memory", "-1MiB"}, "--device-memory"},
                         {{"--device-memory", "lots"}, "--device-memory"},
                         {{"--precision", "fp8"}, "--precision"},
                         {{"--master", "triple"}, "--master"},
                         {{"--master", "bf16"}, "--precision bf16"},
                         {{"--master", "bf16", "--precision", "fp16"}, "--precision bf16"},
                         {{"--loss-scale", "1024"}, "--precision fp16"},
                         {{"--precision", "bf16", "--loss-scale", "1024"}, "--precision fp16"},
                         {{"--precision", "fp16", "--loss-scale", "0.5"}, "--loss-scale"},
                         {{"--precision", "fp16", "--loss-scale", "inf"}, "--loss-scale"},
                         {{"--precision", "fp16", "--loss-scale", "nan"}, "--loss-scale"},
                         {{"--gradient-buffers", "0"}, "--gradient-buffers"},
                         {{"--gradient-buffers", "3"}, "--gradient-buffers"},
                         {{"--optimizer-threads", "-1"}, "--optimizer-threads"},
                         {{"--optimizer-threads", "5000"}, "--optimizer-threads"},
                         {{"--optimizer", "lion"}, "--optimizer"},
                         {{"--backend", "cuda", "--serial"}, "--serial"},
                         {{"--backend", "cuda", "--link-gbps", "1"}, "--link-gbps"},
                         {{"--backend", "tpu"}, "--backend"},
                         {{"--json", "x", "--trace", "x"}, "--json"},
                         {{"--seed", "-1"}, "--seed"},
                         {{"--steps", "many"}, "--steps"},
                         {{"--unknown"}, "--unknown"},
                         {{"--data"}, "--data"},
                         {{"stray"}, "stray"}}) {
    CAPTURE(std::string(named));
    CAPTURE(std::string(arguments.back()));
    try {
      static_cast<void>(parse(arguments));
      FAIL("no error");
    } catch (Error const& error) {
      CAPTURE(error.message());
      CHECK(error.message().find(named) != std::string::npos);
      CHECK(error.message().find('\n') == std::string::npos);
    }
  }
}

TEST_CASE("The precision is the type of everything that is not a sum or the optimizer's own") {
  using roundpipe::DType;
  using roundpipe::StateType;
  CHECK(declared_type(parse({})) == DType::f32);
  CHECK(declared_type(parse({"--precision", "bf16"})) == DType::bf16);
  CHECK(declared_type(parse({"--precision", "fp16"})) == DType::f16);
  CHECK(state_type(parse({"--precision", "bf16"})) == StateType::fp32);
  CHECK(state_type(parse({"--precision", "bf16", "--master", "bf16"})) == StateType::declared);
}

TEST_CASE("Losses are scaled for fp16 alone") {
  CHECK_FALSE(loss_scale(parse({})).has_value());
  CHECK_FALSE(loss_scale(parse({"--precision", "bf16"})).has_value());
  auto const scale = [](std::vector<char const*> const& arguments) {
    return loss_scale(parse(arguments)).value().initial;
  };
  CHECK(scale({"--precision", "fp16"}) == roundpipe::LossScaleOptions{}.initial);
  CHECK(scale({"--precision", "fp16", "--loss-scale", "512"}) == 512);
}

TEST_CASE("Copies and buffers follow the options; with --sync there is one of each") {
  struct Case {
    std::vector<char const*> arguments;
    int staleness;
    std::size_t copies;
    std::size_t buffers;
  };
  for (auto const& wanted :
       std::vector<Case>{{{}, 1, 2, 1},
                         {{"--master", "single"}, 1, 1, 1},
                         {{"--master", "bf16", "--precision", "bf16"}, 1, 2, 1},
                         {{"--master", "single", "--gradient-buffers", "2"}, 1, 1, 2},
                         {{"--sync", "--gradient-buffers", "2"}, 0, 1, 1}}) {
    roundpipe::LayerEventProtocol const protocol(event_protocol(parse(wanted.arguments)));
    CHECK(protocol.staleness() == wanted.staleness);
    CHECK(protocol.master_copies() == wanted.copies);
    CHECK(protocol.gradient_buffers() == wanted.buffers);
  }
}

TEST_CASE("Times are shown as on a clock") {
  CHECK(examples::clock_text(-1) == "0:00");
  CHECK(examples::clock_text(7.4) == "0:07");
  CHECK(examples::clock_text(59.6) == "1:00");
  CHECK(examples::clock_text(3900) == "1:05:00");
}

}  // namespace train_text_test
