// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// expect-error: (required expression|because) .*layer\.backward\(ctx\).* (is|would be) invalid

#include <roundpipe/concepts/layer.hpp>

namespace {

struct Stream {};

/// A layer that could be evaluated, but not trained.
struct Frozen {
  roundpipe::ParameterTable parameters() const { return {}; }
  roundpipe::TensorTable input(roundpipe::BatchShape) const { return {}; }
  roundpipe::TensorTable boundary(roundpipe::BatchShape) const { return {}; }
  roundpipe::Footprint footprint(roundpipe::BatchShape) const { return {}; }
  void forward(roundpipe::ForwardContext<Stream>&) const {}
#ifdef ROUNDPIPE_CONTROL
  void backward(roundpipe::BackwardContext<Stream>&) const {}
#endif
};

template <roundpipe::Layer<Stream> L>
void train(L const&) {}

}  // namespace

void use() {
  train(Frozen{});
}
