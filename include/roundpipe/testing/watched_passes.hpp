// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief Runs passes of a layer, watches what they write, and compares their outcomes.

#include <roundpipe/config.hpp>
#include <roundpipe/testing/layer_layout.hpp>

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace roundpipe::testing::detail {

/// What a pass makes of an image.
using RunPass = std::function<Image(LayerLayout const&, Image, LayerPass const&)>;

/// An image that passes have made, and where its buffers lie.
struct Outcome {
  LayerLayout const* layout = nullptr;
  Image image;
};

/// Thrown where a pass has thrown: the backend may have stopped.
struct PassesEnd {};

/// What memory holds that nobody has written, in two runs: NaNs, or -1, and other numbers.
inline constexpr std::byte garbage[] = {std::byte{0xFF}, std::byte{0xA5}};

/// Runs passes and collects findings.
class WatchedPasses {
 public:
  /// \p run must outlive this.
  explicit WatchedPasses(RunPass const& run) : run_(run) {}

  void report(std::string finding);
  [[nodiscard]] bool sound() const noexcept { return findings_.empty(); }
  [[nodiscard]] std::vector<std::string> take_findings() { return std::move(findings_); }

  /// What \p pass makes of \p from. Reports what it writes but may not.
  /// \throws PassesEnd when the pass throws, which is reported.
  [[nodiscard]] Outcome run(Outcome const& from, LayerPass const& pass);

  /// What to report of an element of a buffer.
  using Text = std::function<std::string(Buffer const&, std::size_t)>;

  /// Reports the first element of each buffer of \p roles in which the outcomes differ.
  void compare(std::initializer_list<Role> roles,
               Outcome const& a,
               Outcome const& b,
               Text const& text);
  /// The same, with the text "CONTEXT: output 'y'[3] is 1, want 2 REASON".
  void expect_same(std::initializer_list<Role> roles,
                   std::string const& context,
                   Outcome const& got,
                   Outcome const& want,
                   char const* reason);
  /// Reports what depends on garbage: the outcomes of \p pass began with different \ref garbage.
  void expect_written(std::initializer_list<Role> roles,
                      LayerPass const& pass,
                      Outcome const& a,
                      Outcome const& b);
  /// Runs \p pass again on \p from, with carried tensors in place: it leaves them alone, and all
  /// else becomes what it is in \p want.
  void expect_in_place(Outcome const& from, LayerPass pass, Outcome const& want);

 private:
  void check_untouched(Outcome const& before, Outcome const& after, LayerPass const& pass);

  RunPass const& run_;
  std::vector<std::string> findings_;
};

}  // namespace roundpipe::testing::detail

#ifndef ROUNDPIPE_COMPILED
#  include <roundpipe/testing/impl/watched_passes.ipp>
#endif
