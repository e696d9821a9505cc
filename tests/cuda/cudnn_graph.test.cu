// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <roundpipe/cuda/attention/cudnn_frontend.hpp>
#include <roundpipe/cuda/attention/cudnn_graph.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <vector>

#if defined(ROUNDPIPE_HAS_CUDNN) && ROUNDPIPE_HAS_CUDNN

using namespace roundpipe;
using cu::detail::CudnnAttentionKey;
using cu::detail::CudnnId;

namespace {

/// Two query heads read each of two key heads.
CudnnAttentionKey example(bool backward, cu::detail::AttentionSlice slice) {
  CudnnAttentionKey key;
  key.backward = backward;
  key.shape = AttentionShape{4, 256, 4, 2, 64, DType::bf16};
  key.slice = slice;
  return key;
}

constexpr cu::detail::AttentionSlice two_rows{2, 2};
constexpr cu::detail::AttentionSlice one_head{1, 1};

/// A graph's tensors: extents in cuDNN's order, and strides.
class Layout {
 public:
  explicit Layout(CudnnAttentionKey const& key) {
    cu::detail::describe_attention(graph_, key);
    auto valid = graph_.validate();
    CHECK_MESSAGE(valid.is_good(), valid.get_message());
  }

  void check(std::int64_t id,
             std::vector<std::int64_t> const& extents,
             std::vector<std::int64_t> const& strides) const {
    CAPTURE(id);
    ::cudnn_frontend::graph::Tensor_attributes tensor;
    REQUIRE(graph_.query_tensor_attributes_of_uid(id, tensor).is_good());
    CHECK(tensor.get_dim() == extents);
    CHECK(tensor.get_stride() == strides);
  }

 private:
  ::cudnn_frontend::graph::Graph graph_;
};

}  // namespace

TEST_CASE("plans are kept apart by all that changes a graph") {
  std::vector<CudnnAttentionKey> keys(12, example(false, two_rows));
  keys[1].backward = true;
  keys[2].deterministic = true;
  keys[3].shape.rows = 5;
  keys[4].shape.length = 512;
  keys[5].shape.heads = 8;
  keys[6].shape.kv_heads = 4;
  keys[7].shape.head_dim = 128;
  keys[8].shape.dtype = DType::f16;
  keys[9].slice.rows = 1;
  keys[10].slice.kv_heads = 1;
  keys[11].shape.window = 64;
  CHECK(std::set<CudnnAttentionKey>(keys.begin(), keys.end()).size() == keys.size());
  CHECK(std::set<CudnnAttentionKey>{keys[1], keys[1]}.size() == 1);
}

TEST_CASE("the graph of a slice has the slice's extents and the strides of all heads") {
  using enum cu::detail::CudnnId;
  for (bool const backward : {false, true}) {
    CAPTURE(backward);
    for (auto const slice : {two_rows, one_head}) {
      CAPTURE(slice.rows);
      Layout const graph(example(backward, slice));
      auto const heads = 2 * slice.kv_heads;
      std::vector<CudnnId> of_queries{q_id, out_id};
      std::vector<CudnnId> of_keys{k_id, v_id};
      if (backward) {
        of_queries.insert(of_queries.end(), {dout_id, dq_id});
        of_keys.insert(of_keys.end(), {dk_id, dv_id});
      }
      for (auto const id : of_queries) {
        graph.check(id, {slice.rows, heads, 256, 64}, {256 * 4 * 64, 64, 4 * 64, 1});
      }
      for (auto const id : of_keys) {
        graph.check(id, {slice.rows, slice.kv_heads, 256, 64}, {256 * 2 * 64, 64, 2 * 64, 1});
      }
      graph.check(lse_id, {slice.rows, heads, 256, 1}, {heads * 256, 256, 1, 1});
    }
  }
}

TEST_CASE("a graph may have a window") {
  using enum cu::detail::CudnnId;
  for (bool const backward : {false, true}) {
    auto key = example(backward, two_rows);
    key.shape.window = 64;
    Layout const graph(key);
    graph.check(out_id, {2, 4, 256, 64}, {256 * 4 * 64, 64, 4 * 64, 1});
  }
}

#else

// The main function requires a test case, and a skipped one makes the program skipped.
TEST_CASE("the graph of cuDNN's attention: this program is built without cuDNN" * doctest::skip()) {
}

#endif
