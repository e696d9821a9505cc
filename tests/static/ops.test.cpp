// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/concepts/ops.hpp>

#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/concepts/layer.hpp>
#include <roundpipe/concepts/model.hpp>
#include <roundpipe/nn/host_ops.hpp>
#include <roundpipe/nn/transformer.hpp>
#include <support/ops_archetype.hpp>

// The layers need nothing of an Ops beyond the concept.
template class roundpipe::nn::TokenEmbedding<roundpipe::test::OpsArchetype>;
template class roundpipe::nn::TransformerBlock<roundpipe::test::OpsArchetype>;
template class roundpipe::nn::LanguageModelHead<roundpipe::test::OpsArchetype>;

namespace {

using namespace roundpipe;
using test::OpsArchetype;
using Host = nn::HostOps<float>;

static_assert(Ops<OpsArchetype>);
static_assert(Ops<nn::HostOps<float>>);
static_assert(Ops<nn::HostOps<double>>);
static_assert(!Ops<int>);
static_assert(!Ops<HostStream>);

static_assert(Layer<nn::TokenEmbedding<Host>, HostStream>);
static_assert(Layer<nn::TransformerBlock<Host>, HostStream>);
static_assert(Layer<nn::LanguageModelHead<Host>, HostStream>);
static_assert(Layer<nn::TransformerBlock<OpsArchetype>, test::OpsArchetypeStream>);
static_assert(!Layer<nn::TransformerBlock<Host>, test::OpsArchetypeStream>);

static_assert(Model<nn::Transformer<Host>, HostStream> && HasRuns<nn::Transformer<Host>>);
static_assert(!Model<nn::Transformer<Host>, test::OpsArchetypeStream>);

static_assert(LossLayer<nn::LanguageModelHead<Host>>);
static_assert(!LossLayer<nn::TransformerBlock<Host>> && !LossLayer<nn::TokenEmbedding<Host>>);
static_assert(HasResults<nn::LanguageModelHead<Host>>);
static_assert(HasSideInputs<nn::TokenEmbedding<Host>> &&
              HasSideInputs<nn::LanguageModelHead<Host>>);
static_assert(!HasSideInputs<nn::TransformerBlock<Host>>);
static_assert(HasWork<nn::TransformerBlock<Host>> && HasName<nn::TransformerBlock<Host>>);

// Each lacks one member of the smallest model.
struct OpsWithoutScratch : OpsArchetype {
  explicit OpsWithoutScratch(Stream&);
};
struct OpsThatStay : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  OpsThatStay(OpsThatStay const&) = delete;
};
struct OpsWithoutProducts : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void linear(T, T, T, T) const = delete;
};
struct OpsWithoutAddend : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void linear_input_gradient(T, T, T) const;
};
struct OpsWithoutScale : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void linear(T, T, T, T) const;
};
struct OpsThatChange : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void linear_weight_gradient(T, T, T);
};
struct OpsWithoutBias : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void add_bias(T, T, T) const = delete;
};
struct OpsWithoutBiasScratch : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  static void bias_scratch_bytes(std::int64_t, std::int64_t);
};
struct OpsWithoutNormScratch : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  static void norm_scratch_bytes(std::int64_t, std::int64_t);
};
struct OpsWithoutRotary : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void rotary(T, T, T, RotaryOptions const&) const = delete;
};
struct OpsWithoutAttentionGradient : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void attention_backward(T, T, T, T, T, T, T, T, T, std::int64_t) const = delete;
};
struct OpsWithoutWindow : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void attention(T, T, T, T, T) const;
};
struct OpsWithoutDropout : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void dropout(T, T, T, DropoutOptions const&) const = delete;
};
struct OpsWithoutEmbedding : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void embedding(T, T, T) const = delete;
};
struct OpsWithoutSum : OpsArchetype {
  using OpsArchetype::OpsArchetype;
  void sum(DeviceSpan<double>, T, double) const = delete;
};
static_assert(!Ops<OpsWithoutScratch>);
static_assert(!Ops<OpsThatStay>);
static_assert(!LinearOps<OpsWithoutProducts> && !Ops<OpsWithoutProducts>);
static_assert(!LinearOps<OpsWithoutAddend>);
static_assert(!LinearOps<OpsWithoutScale>);
static_assert(!LinearOps<OpsThatChange>, "a handle is const where it is used");
static_assert(!BiasOps<OpsWithoutBias> && !Ops<OpsWithoutBias>);
static_assert(!BiasOps<OpsWithoutBiasScratch>);
static_assert(!NormOps<OpsWithoutNormScratch> && !Ops<OpsWithoutNormScratch>);
static_assert(!NormOps<OpsWithoutRotary>);
static_assert(!AttentionOps<OpsWithoutAttentionGradient> && !Ops<OpsWithoutAttentionGradient>);
static_assert(!AttentionOps<OpsWithoutWindow>);
static_assert(!ElementwiseOps<OpsWithoutDropout> && !Ops<OpsWithoutDropout>);
static_assert(!EmbeddingOps<OpsWithoutEmbedding> && !Ops<OpsWithoutEmbedding>);
static_assert(!LossOps<OpsWithoutSum> && !Ops<OpsWithoutSum>);

}  // namespace
