// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/concepts/model.hpp>

#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/model/sequential.hpp>
#include <support/layer_archetype.hpp>
#include <support/made_model.hpp>
#include <support/toy_layers.hpp>

#include <cstddef>

namespace model_static_test {

using namespace roundpipe;
using test::LayerArchetype;
using test::MadeModel;
using test::ToyDense;
using test::ToyLoss;

struct AnyStream {};
struct Described : LayerArchetype<AnyStream> {
  using LayerArchetype::LayerArchetype;
  void backward() const = delete;
};

static_assert(Model<Sequential<ToyDense, ToyLoss>, HostStream>);
static_assert(Model<MadeModel<ToyDense, ToyLoss>, HostStream>, "made at run time");
static_assert(Model<Sequential<LayerArchetype<AnyStream>>, AnyStream>);
static_assert(HasRuns<Sequential<ToyDense>> && !HasRuns<MadeModel<ToyDense>>);

static_assert(!Model<Sequential<ToyDense>, AnyStream>, "the layers run on other streams");
static_assert(!Model<Sequential<LayerArchetype<AnyStream>, Described>, AnyStream>);
static_assert(DescribedModel<Sequential<LayerArchetype<AnyStream>, Described>>);
static_assert(!DescribedModel<Sequential<ToyDense, int>>);
static_assert(!Model<ToyDense, HostStream> && !Model<int, HostStream>);

// Each lacks one member, or has it in another form.
struct ModelWithoutCount {
  template <class F>
  std::size_t visit(LayerId, F&& f) const {
    return f(ToyDense{});
  }
};
struct ModelWithMutableVisit {
  std::size_t layer_count() const;
  template <class F>
  std::size_t visit(LayerId, F&& f) {
    return f(ToyDense{});
  }
};
struct ModelThatDropsResults {
  std::size_t layer_count() const;
  template <class F>
  void visit(LayerId, F&& f) const {
    f(ToyDense{});
  }
};
struct ModelThatStays : Sequential<ToyDense> {
  using Sequential::Sequential;
  ModelThatStays(ModelThatStays const&) = delete;
};
static_assert(!Model<ModelWithoutCount, HostStream>);
static_assert(!Model<ModelWithMutableVisit, HostStream>);
static_assert(!Model<ModelThatDropsResults, HostStream>);
static_assert(!Model<ModelThatStays, HostStream>);

}  // namespace model_static_test
