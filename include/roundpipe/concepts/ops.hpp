// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

/// \file
/// \brief The operations from which layers are built once and run on every kind of device.
///
/// An `Ops` is a cheap handle, made for one call of a layer: `O ops{ctx.stream(), scratch}`. An
/// operation may use the scratch, which is device memory, while it runs. Operations of one stream
/// run one after another, so all operations of a layer share the scratch. A layer reserves the
/// largest `..._scratch_bytes` of its operations (0 where an operation has no such function).
///
/// Arguments come in this order: tensors written, tensors read, optional tensors, numbers.

#include <roundpipe/core/bytes.hpp>
#include <roundpipe/core/dtype.hpp>
#include <roundpipe/core/random.hpp>
#include <roundpipe/core/span.hpp>
#include <roundpipe/core/tensor.hpp>

#include <concepts>
#include <cstdint>

namespace roundpipe {

/// Stands for an absent optional tensor.
inline constexpr DeviceTensor absent{};

/// The extents of a product with a weight: x [rows, in], weight [out, in], y [rows, out].
struct LinearExtents {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};

/// The extents of causal self-attention over \c rows sequences of \c length positions each.
struct AttentionShape {
  std::int64_t rows = 1;
  std::int64_t length = 1;
  std::int64_t heads = 1;     ///< Of the queries.
  std::int64_t kv_heads = 1;  ///< Of keys and values; divides \c heads.
  std::int64_t head_dim = 1;
  DType dtype = DType::f32;  ///< Of queries, keys and values.
  std::int64_t window = 0;   ///< Keys that a query sees, its own position included; 0: all.
};

/// How frequencies of a rotary position embedding depart from the geometric series f(i) =
/// theta^(-2i/d), which models do that stretch their context. Pair i keeps the share
///
///     s(i) = kept + kept_by_pair i + kept_by_frequency f(i), but at least 0 and at most 1
///
/// of its frequency, and the rest is divided: it turns by f(i) (s(i) + (1 - s(i)) / factor) a
/// position. By default a pair keeps all.
struct RotaryBlend {
  double factor = 1;
  double kept = 1;
  double kept_by_pair = 0;
  double kept_by_frequency = 0;
  double amplitude = 1;  ///< Multiplies the rotated vectors.

  friend bool operator==(RotaryBlend const&, RotaryBlend const&) = default;
};

/// The constants of rotary position embedding and of the norm that may precede the rotation.
struct RotaryOptions {
  double theta = 10000;    ///< The base of the geometric series of wave lengths.
  double epsilon = 1e-6;   ///< Of the norm.
  RotaryBlend blend = {};  ///< Of the frequencies.
};

/// The constants of a dropout.
struct DropoutOptions {
  double rate = 0;  ///< The probability that an element is dropped, in [0, 1).
  RandomKey key;    ///< Word i of this stream decides about element i, in row-major order.
};

/// \brief Products with a weight of shape [out, in], the layout of the common checkpoints.
///
/// Semantics. A tensor with a trailing extent `in` (or whose trailing extents multiply to `in`)
/// counts as a matrix of `size / in` rows:
/// 1. `linear(y, x, w, c, scale)`: y = scale x wᵀ + c. c is optional; c may be y, which then
///    accumulates. Here and below, the scale is 1 where it is left out; reason: that of a low-rank
///    adapter costs no pass of its own.
/// 2. `linear_input_gradient(dx, dy, w, c, scale)`: dx = scale dy w + c. c is optional and may be
///    dx.
/// 3. `linear_weight_gradient(dw, dy, x)`: dw += dyᵀ x, in the accumulation type; reason: dw sums
///    over the micro-batches of a slot. dw is optional.
/// 4. Sums use at least the accumulation type and are rounded once, to the type of the output,
///    which may differ from the type of the inputs (logits do).
template <class O>
concept LinearOps = requires(O const& ops, DeviceTensor const& t, double scale) {
  { O::linear_scratch_bytes() } -> std::same_as<Bytes>;
  ops.linear(t, t, t, t);
  ops.linear(t, t, t, t, scale);
  ops.linear_input_gradient(t, t, t, t);
  ops.linear_input_gradient(t, t, t, t, scale);
  ops.linear_weight_gradient(t, t, t);
};

/// \brief Biases, which are added to every row of a product. `width` = bias.size().
///
/// Semantics:
/// 1. `add_bias(y, bias, c)`: y = c + bias in each row of `width` elements, or the bias alone where
///    c is absent. c may be y. A product that follows adds to y: `linear(y, x, w, y)`; reason: the
///    sum with the bias is then rounded once.
/// 2. `bias_gradient(dbias, dy)`: dbias += the sum of the rows of dy, in the accumulation type and
///    in an order that depends on the extents alone. dbias is optional.
/// 3. `bias_scratch_bytes(rows, width)` suffices for either operation.
template <class O>
concept BiasOps = requires(O const& ops, DeviceTensor const& t, std::int64_t n) {
  { O::bias_scratch_bytes(n, n) } -> std::same_as<Bytes>;  // rows, width
  ops.add_bias(t, t, t);
  ops.bias_gradient(t, t);
};

/// \brief Root-mean-square norms over the last `width` elements (Zhang & Sennrich 2019, eq. 4).
///
/// Semantics, with n(x) = x / sqrt(mean(x²) + epsilon) over each `width` = gain.size() elements:
/// 1. `rms_norm(y, x, gain, epsilon)`: y = gain n(x).
/// 2. `rms_norm_backward(dx, dgain, dy, x, gain, c, epsilon)`: dx = the gradient + c, and dgain +=
///    the gradient's sum over all vectors, in an order that depends on the extents alone. c (the
///    gradient of a residual branch) is optional; dx is optional and may be dy or c; dgain is
///    optional.
/// 3. `rotary(y, x, gain, options)` takes x of shape [rows, length, heads, d]. Where gain (of size
///    d) is present, it applies `rms_norm` to each head. Then it rotates the pair (i, i + d/2) of
///    position t (counted from 0 in each row) by t theta^(-2i/d) (Su et al. 2021, eq. 34, pairs as
///    in Hugging Face's `rotate_half`), or by what `options.blend` makes of that frequency, and
///    multiplies it by `options.blend.amplitude`. y may be x.
/// 4. `rotary_backward(dx, dgain, dy, x, gain, options)` is the gradient of `rotary`. It reads x
///    and writes dgain only where gain is present; dgain is optional there, too. dx may be dy.
template <class O>
concept NormOps =
    requires(O const& ops, DeviceTensor const& t, std::int64_t n, RotaryOptions options) {
      { O::norm_scratch_bytes(n, n) } -> std::same_as<Bytes>;  // vectors, width
      ops.rms_norm(t, t, t, double{});
      ops.rms_norm_backward(t, t, t, t, t, t, double{});
      ops.rotary(t, t, t, options);
      ops.rotary_backward(t, t, t, t, t, options);
    };

/// \brief Causal attention with grouped queries (Ainslie et al. 2023).
///
/// Semantics, with q, o of shape [rows, length, heads, d] and k, v [rows, length, kv_heads, d]:
/// 1. `attention(o, lse, q, k, v, window)`: position t attends to positions 0 to t of its row or,
///    if window is not 0, to the last window of these, its own included (Beltagy et al. 2020,
///    section 3.1, to one side). Query head h reads key head h / (heads / kv_heads); scores are
///    scaled by 1/sqrt(d). lse, of shape [rows, heads, length] in the accumulation type, is the
///    logarithm of the sum of the exponentials of each query's scaled scores.
/// 2. `attention_backward(dq, dk, dv, d_o, q, k, v, o, lse, window)` recomputes probabilities from
///    lse (Dao et al. 2022, section 3.1); reason: the saved memory then grows with the number of
///    positions, not with its square. Sums over query heads and positions have a fixed order.
/// 3. `attention_scratch_bytes(shape)` suffices for either operation.
/// 4. A window of `length` or more gives the bits of window 0.
template <class O>
concept AttentionOps =
    requires(O const& ops, DeviceTensor const& t, AttentionShape shape, std::int64_t window) {
      { O::attention_scratch_bytes(shape) } -> std::same_as<Bytes>;
      ops.attention(t, t, t, t, t, window);
      ops.attention_backward(t, t, t, t, t, t, t, t, t, window);
    };

/// \brief Element-wise operations.
///
/// Semantics:
/// 1. `swiglu(y, gate, up)`: y = silu(gate) up, silu(z) = z / (1 + exp(-z)) (Shazeer 2020, eq. 5).
///    y may be gate.
/// 2. `swiglu_backward(dgate, dup, y, dy, gate, up)` writes both gradients, and y again; reason:
///    the weight gradient that follows needs y, and this pass already reads all operands of y. dup
///    may be dy.
/// 3. `dropout(y, x, c, options)`: y = x m / (1 - rate) + c, where element i of m is 0 when
///    `uniform(random_word(key, i)) < rate` and 1 otherwise. No mask is stored: the gradient is the
///    same operation with the same options. c is optional. y may be x or c.
template <class O>
concept ElementwiseOps = requires(O const& ops, DeviceTensor const& t, DropoutOptions options) {
  ops.swiglu(t, t, t);
  ops.swiglu_backward(t, t, t, t, t, t);
  ops.dropout(t, t, t, options);
};

/// \brief Look-ups by token. Tokens are i32; table has shape [vocabulary, width].
///
/// Semantics:
/// 1. `embedding(y, tokens, table)`: y[i] = table[tokens[i]].
/// 2. `embedding_backward(dtable, dy, tokens)`: dtable[tokens[i]] += dy[i], in the order of i for
///    each token; reason: with atomic additions the sum would depend on timing. dtable is optional.
/// 3. A token outside the vocabulary must not touch memory outside the table. Host operations throw
///    `Error` (invalid_argument) in the stream.
template <class O>
concept EmbeddingOps = requires(O const& ops, DeviceTensor const& t, std::int64_t n) {
  { O::embedding_scratch_bytes(n, n, n) } -> std::same_as<Bytes>;  // tokens, vocabulary, width
  ops.embedding(t, t, t);
  ops.embedding_backward(t, t, t);
};

/// \brief Cross-entropy over logits of shape [positions, vocabulary]; labels are i32.
///
/// Semantics:
/// 1. `cross_entropy(losses, lse, logits, labels, padding)`: for each position, lse is the
///    logarithm of the sum of the exponentials of its logits, and losses = lse - logits[label], or
///    0 where the label is `padding`. Both have the accumulation type.
/// 2. `cross_entropy_backward(dlogits, logits, lse, labels, padding, scale)`:
///    dlogits = scale (exp(logits - lse) - onehot(label)), or 0 where the label is `padding`.
///    dlogits may be logits.
/// 3. `sum(total, terms, factor)`: the single number total = factor times the sum of all terms, in
///    f64, in an order that depends on the size alone.
/// 4. Labels outside the vocabulary follow the rule for tokens outside the vocabulary.
template <class O>
concept LossOps = requires(O const& ops,
                           DeviceTensor const& t,
                           DeviceSpan<double> total,
                           std::int32_t padding,
                           double number) {
  ops.cross_entropy(t, t, t, t, padding);
  ops.cross_entropy_backward(t, t, t, t, padding, number);
  ops.sum(total, t, number);
};

/// \brief All operations of the reference layers, on one kind of device.
///
/// Semantics:
/// 1. Every operation only enqueues, on the stream of the handle. The memory of the tensors must
///    live until the operation has run. Tensors are captured by value.
/// 2. An operation checks shapes and types when it is enqueued. It throws `Error`
///    (invalid_argument) for operands that do not fit, and (unsupported) for a combination of
///    element types that this device does not compute.
/// 3. A tensor that is written shares no memory with other tensors of the call, except where an
///    operation says that one "may be" another. An absent optional sum of gradients (of a frozen
///    parameter) costs no work, and the other results keep their bits.
/// 4. Equal inputs give equal bits at any time, on any thread and at any address, as long as
///    tensors begin at multiples of 256 bytes or at fixed distances from such a multiple; reason: a
///    recomputation, perhaps on another device, must repeat the forward.
/// 5. The scratch functions do not grow when an argument shrinks. The scratch is aligned to 256
///    bytes; its content is undefined.
///
/// Satisfied by: `nn::HostOps`, `cu::CudaOps`.
template <class O>
concept Ops =
    std::copy_constructible<O> && std::constructible_from<O, typename O::Stream&, DeviceBytes> &&
    LinearOps<O> && BiasOps<O> && NormOps<O> && AttentionOps<O> && ElementwiseOps<O> &&
    EmbeddingOps<O> && LossOps<O>;

}  // namespace roundpipe
