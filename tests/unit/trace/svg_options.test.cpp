// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/trace/svg_options.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace svg_options_test {

using namespace roundpipe;
using detail::TimelineBox;

namespace {

using Texts = std::vector<std::string>;

TimelineBox box() {
  TimelineBox result;
  result.kind = ActionKind::backward;
  result.micro_batch = MicroBatchId(3);
  result.first_layer = LayerId(0);
  result.last_layer = LayerId(6);
  return result;
}

}  // namespace

TEST_CASE("A box is labelled with its layers, its micro-batch, both or neither") {
  CHECK(detail::labels_of(box(), SvgLabels::both) == Texts{"0-6.m3", "m3"});
  CHECK(detail::labels_of(box(), SvgLabels::layers) == Texts{"0-6"});
  CHECK(detail::labels_of(box(), SvgLabels::micro_batches) == Texts{"3"});
  CHECK(detail::labels_of(box(), SvgLabels::none).empty());
}

TEST_CASE("A single layer is one number, and a label leaves out missing fields") {
  auto single = box();
  single.first_layer = single.last_layer = LayerId(12);
  CHECK(detail::labels_of(single, SvgLabels::both) == Texts{"12.m3", "m3"});
  single.micro_batch = MicroBatchId::none();
  CHECK(detail::labels_of(single, SvgLabels::both) == Texts{"12"});
  single.first_layer = single.last_layer = LayerId::none();
  CHECK(detail::labels_of(single, SvgLabels::both).empty());
}

TEST_CASE("A wider box has a longer label, and no label is wider than its box") {
  std::vector<SvgLabels> const kinds{SvgLabels::both, SvgLabels::layers, SvgLabels::micro_batches};
  for (auto const kind : kinds) {
    std::size_t length = 0;
    for (double width_px = 0; width_px < 100; width_px += 0.5) {
      auto const label = detail::fitting_label(box(), kind, width_px, 28);
      if (label) {
        CHECK(detail::text_width(label->text, label->font_px) <= width_px);
        CHECK(label->font_px >= 8);
      }
      auto const now = label ? label->text.size() : 0;
      if (kind != SvgLabels::both) {
        CHECK(now >= length);
      }
      length = now;
    }
    CHECK(length == 2 + detail::labels_of(box(), kind).front().size());
    CHECK_FALSE(detail::fitting_label(box(), kind, 5, 28));
  }
  CHECK(detail::fitting_label(box(), SvgLabels::both, 100, 28)->text == "B 0-6.m3");
  CHECK(detail::fitting_label(box(), SvgLabels::both, 46, 28)->text == "0-6.m3");
  CHECK(detail::fitting_label(box(), SvgLabels::both, 20, 28)->text == "m3");
}

TEST_CASE("A low row has small labels, and a very low row none") {
  CHECK(detail::fitting_label(box(), SvgLabels::both, 100, 10)->font_px == 9);
  CHECK_FALSE(detail::fitting_label(box(), SvgLabels::both, 100, 7));
}

TEST_CASE("The legend explains the labels in use") {
  CHECK(detail::meaning_of(SvgLabels::none).empty());
  CHECK(detail::meaning_of(SvgLabels::both) == "0-6.m3: layers 0 to 6, micro-batch 3");
  CHECK(detail::meaning_of(SvgLabels::layers) != detail::meaning_of(SvgLabels::micro_batches));
}

}  // namespace svg_options_test
