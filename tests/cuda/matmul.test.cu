// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <common/memory_peak.hpp>
#include <roundpipe/core/bytes.hpp>
#include <roundpipe/cuda/device/memory_limits.hpp>
#include <roundpipe/cuda/device/other_processes.hpp>
#include <roundpipe/cuda/device/stream.hpp>
#include <roundpipe/cuda/matmul/matmul.hpp>
#include <support/cuda_gate.hpp>
#include <support/cuda_resources.hpp>
#include <support/device_values.hpp>
#include <support/error_of.hpp>
#include <support/temporary_folder.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace cu = roundpipe::cu;
using roundpipe::absent;
using roundpipe::Bytes;
using roundpipe::DeviceId;
using roundpipe::DeviceTensor;
using roundpipe::DType;
using roundpipe::Errc;
using roundpipe::LinearExtents;
using roundpipe::test::DeviceValues;
using roundpipe::test::error_of;
using roundpipe::test::random_values;
using roundpipe::test::relative_error;
using roundpipe::test::tolerance;
using namespace roundpipe::literals;

namespace {

using Values = std::vector<double>;

struct Types {
  DType operands;
  DType result;
};
constexpr Types all_types[] = {{DType::f32, DType::f32},
                               {DType::bf16, DType::bf16},
                               {DType::bf16, DType::f32},
                               {DType::f16, DType::f16},
                               {DType::f16, DType::f32}};
constexpr LinearExtents all_extents[] = {
    {1, 1, 1}, {3, 5, 7}, {64, 128, 96}, {17, 33, 65}, {129, 72, 200}, {130, 257, 151}};

/// c[i, j] += a b over k. The strides step through a and b: in i or j, and in k.
void add_products(Values& c,
                  std::int64_t rows,
                  std::int64_t columns,
                  std::int64_t terms,
                  Values const& a,
                  std::int64_t a_i,
                  std::int64_t a_k,
                  Values const& b,
                  std::int64_t b_j,
                  std::int64_t b_k) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < terms; ++k) {
        sum += a[static_cast<std::size_t>(i * a_i + k * a_k)] *
               b[static_cast<std::size_t>(j * b_j + k * b_k)];
      }
      c[static_cast<std::size_t>(i * columns + j)] += sum;
    }
  }
}

std::size_t size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a * b);
}

/// The operands of all three products, on the host and on the device.
struct Operands {
  explicit Operands(LinearExtents extents, DType type, roundpipe::Bytes offset = 0)
      : e(extents),
        host_x(random_values(size(e.rows, e.in), type)),
        host_weight(random_values(size(e.out, e.in), type)),
        host_dy(random_values(size(e.rows, e.out), type)),
        x({e.rows, e.in}, type, host_x, offset),
        weight({e.out, e.in}, type, host_weight, offset),
        dy({e.rows, e.out}, type, host_dy, offset) {}

  Values y(Values start) const {
    add_products(start, e.rows, e.out, e.in, host_x, e.in, 1, host_weight, e.in, 1);
    return start;
  }
  Values dx(Values start) const {
    add_products(start, e.rows, e.in, e.out, host_dy, e.out, 1, host_weight, 1, e.in);
    return start;
  }
  Values dweight(Values start) const {
    add_products(start, e.out, e.in, e.rows, host_dy, 1, e.out, host_x, 1, e.in);
    return start;
  }

  LinearExtents e;
  Values host_x;
  Values host_weight;
  Values host_dy;
  DeviceValues x;
  DeviceValues weight;
  DeviceValues dy;
};

/// The program's choices of algorithms.
cu::MatmulAlgorithms& algorithms() {
  return roundpipe::test::shared_resources()->get<cu::MatmulAlgorithms>();
}

/// A stream with scratch. Measures only on request, because measurements take long.
struct Setting {
  explicit Setting(bool measures = false) { algorithms().measure(measures); }

  void linear(LinearExtents e,
              DeviceTensor const& y,
              DeviceTensor const& x,
              DeviceTensor const& weight,
              DeviceTensor const& c,
              double scale = 1) const {
    cu::linear(stream, algorithms(), DeviceId(0), scratch.bytes(), e, y, x, weight, c, scale);
  }
  void input_gradient(LinearExtents e,
                      DeviceTensor const& dx,
                      DeviceTensor const& dy,
                      DeviceTensor const& weight,
                      DeviceTensor const& c,
                      double scale = 1) const {
    cu::linear_input_gradient(
        stream, algorithms(), DeviceId(0), scratch.bytes(), e, dx, dy, weight, c, scale);
  }
  void weight_gradient(LinearExtents e,
                       DeviceTensor const& dweight,
                       DeviceTensor const& dy,
                       DeviceTensor const& x) const {
    cu::linear_weight_gradient(
        stream, algorithms(), DeviceId(0), scratch.bytes(), e, dweight, dy, x);
  }

  cu::Stream stream;
  cu::DeviceMemory scratch{DeviceId(0), cu::matmul_scratch_bytes()};
};

void check_products(Types types, LinearExtents e, roundpipe::Bytes offset) {
  CAPTURE(name_of(types.operands));
  CAPTURE(name_of(types.result));
  CAPTURE(e.rows);
  CAPTURE(e.in);
  CAPTURE(e.out);
  Setting const setting;
  Operands const o(e, types.operands, offset);
  auto const bound = tolerance(types.result);
  auto const check_form = [&](auto const& expected, auto const& product, std::int64_t width) {
    auto const start = random_values(size(e.rows, width), types.result);
    Values const zeros(start.size());
    DeviceValues const plain({e.rows, width}, types.result, offset);
    product(plain, absent);
    CHECK(relative_error(plain.values(), expected(zeros)) < bound);
    auto const sum = expected(start);
    DeviceValues const addend({e.rows, width}, types.result, start, offset);
    DeviceValues const apart({e.rows, width}, types.result, offset);
    product(apart, addend);
    CHECK(relative_error(apart.values(), sum) < bound);
    product(addend, addend);
    CHECK(relative_error(addend.values(), sum) < bound);
  };
  check_form(
      [&](Values const& c) { return o.y(c); },
      [&](DeviceTensor const& y, DeviceTensor const& c) { setting.linear(e, y, o.x, o.weight, c); },
      e.out);
  check_form([&](Values const& c) { return o.dx(c); },
             [&](DeviceTensor const& dx, DeviceTensor const& c) {
               setting.input_gradient(e, dx, o.dy, o.weight, c);
             },
             e.in);
  auto const start = random_values(size(e.out, e.in), DType::f32);
  DeviceValues const dweight({e.out, e.in}, DType::f32, start, offset / 2 * 4);
  setting.weight_gradient(e, dweight, o.dy, o.x);
  setting.weight_gradient(e, dweight, o.dy, o.x);
  CHECK(relative_error(dweight.values(), o.dweight(o.dweight(start))) < tolerance(DType::f32));
}

}  // namespace

TEST_CASE("all three products agree with sums in double") {
  for (auto const types : all_types) {
    for (auto const extents : all_extents) {
      check_products(types, extents, 0);
    }
  }
}

TEST_CASE("products are scaled, and their addends are not") {
  LinearExtents const e{64, 128, 96};
  for (auto const types : all_types) {
    CAPTURE(name_of(types.operands));
    CAPTURE(name_of(types.result));
    Setting const setting;
    Operands const o(e, types.operands);
    auto const check_sum = [&](Values const& result, Values const& product, Values sum) {
      for (std::size_t i = 0; i < sum.size(); ++i) {
        sum[i] += 0.3 * product[i];
      }
      CHECK(relative_error(result, sum) < tolerance(types.result));
    };
    auto const start = random_values(size(e.rows, e.out), types.result);
    DeviceValues const y({e.rows, e.out}, types.result, start);
    setting.linear(e, y, o.x, o.weight, y, 0.3);
    check_sum(y.values(), o.y(Values(start.size())), start);
    auto const first = random_values(size(e.rows, e.in), types.result);
    DeviceValues const dx({e.rows, e.in}, types.result, first);
    setting.input_gradient(e, dx, o.dy, o.weight, dx, 0.3);
    check_sum(dx.values(), o.dx(Values(first.size())), first);
  }
}

TEST_CASE("tensors may begin at any multiple of their element size") {
  for (auto const types : all_types) {
    for (roundpipe::Bytes const elements : {1, 2, 4}) {
      check_products(types, {40, 64, 48}, elements * size_of(types.result));
    }
  }
}

TEST_CASE("sums of f32 have full precision") {
  // tf32 would keep 10 bits of each factor.
  LinearExtents const e{256, 256, 256};
  Setting const setting;
  Operands const o(e, DType::f32);
  DeviceValues const y({e.rows, e.out}, DType::f32);
  setting.linear(e, y, o.x, o.weight, absent);
  CHECK(relative_error(y.values(), o.y(Values(size(e.rows, e.out)))) < 2e-6);
}

TEST_CASE("a repeated product has the same bits") {
  Setting const setting;
  for (auto const types : all_types) {
    LinearExtents const e{64, 4096, 48};  // long sums, which cuBLASLt may split
    Operands const o(e, types.operands);
    DeviceValues const y({e.rows, e.out}, types.result);
    setting.linear(e, y, o.x, o.weight, absent);
    auto const bits = y.bits();
    for (int i = 0; i < 20; ++i) {
      setting.linear(e, y, o.x, o.weight, absent);
      CHECK(y.bits() == bits);
    }
  }
}

TEST_CASE("without rows a gradient stays unchanged, and an empty sum is its addend") {
  Setting const setting;
  DeviceValues const dweight({4, 8}, DType::f32, Values(32, 1.0));
  DeviceTensor const nothing({dweight.tensor().device_pointer(), 0}, {0, 8}, DType::bf16);
  setting.weight_gradient({0, 8, 4}, dweight, nothing, nothing);
  CHECK(dweight.values() == Values(32, 1.0));
  setting.linear({0, 8, 4}, nothing, nothing, nothing, absent);
  DeviceValues const y({2, 3}, DType::bf16);
  DeviceValues const addend({2, 3}, DType::bf16, Values(6, 2.0));
  setting.linear({2, 0, 3}, y, nothing, nothing, addend);
  CHECK(y.values() == Values(6, 2.0));
  setting.linear({2, 0, 3}, y, nothing, nothing, absent);
  CHECK(y.values() == Values(6, 0.0));
}

TEST_CASE("the gradient of a frozen weight costs nothing") {
  Setting const setting;
  Operands const o({4, 8, 16}, DType::bf16);
  setting.weight_gradient(o.e, absent, o.dy, o.x);
  CHECK(setting.stream.is_done());
}

TEST_CASE("an unsupported mix of types is named") {
  Setting const setting;
  LinearExtents const e{4, 8, 16};
  Operands const o(e, DType::bf16);
  Operands const other(e, DType::f16);
  DeviceValues const y({4, 16}, DType::bf16);
  DeviceValues const wide({4, 16}, DType::f32);
  auto const mixed = error_of([&] { setting.linear(e, y, o.x, other.weight, absent); });
  CHECK(mixed.code() == Errc::unsupported);
  CHECK(mixed.message().find("f16 and bf16 to bf16") != std::string::npos);
  CHECK(error_of([&] { setting.linear(e, y, o.x, o.weight, wide); }).code() == Errc::unsupported);
  CHECK(error_of([&] { setting.input_gradient(e, y, wide, o.weight, absent); }).code() ==
        Errc::unsupported);
  CHECK(error_of([&] { setting.weight_gradient(e, y, o.dy, o.x); }).code() == Errc::unsupported);
}

TEST_CASE("too little scratch is an error") {
  Setting const setting;
  Operands const o({4, 8, 16}, DType::bf16);
  DeviceValues const y({4, 16}, DType::bf16);
  CHECK(error_of([&] {
          cu::linear(setting.stream, algorithms(), DeviceId(0), {}, o.e, y, o.x, o.weight, absent);
        }).code() == Errc::invalid_argument);
}

TEST_CASE("choices that are saved and loaded give the same bits") {
  roundpipe::test::TemporaryFolder const folder;
  auto const path = folder.path / "algorithms.txt";
  algorithms().clear();
  auto const results = [](bool measures) {
    Setting const setting(measures);
    std::vector<std::vector<std::byte>> bits;
    for (LinearExtents const e : {LinearExtents{64, 4096, 48}, LinearExtents{200, 264, 136}}) {
      Values const x(size(e.rows, e.in), 0.1);
      Values const weight(size(e.out, e.in), 0.3);
      DeviceValues const operand({e.rows, e.in}, DType::bf16, x);
      DeviceValues const other({e.out, e.in}, DType::bf16, weight);
      DeviceValues const y({e.rows, e.out}, DType::f32);
      setting.linear(e, y, operand, other, absent);
      bits.push_back(y.bits());
    }
    return bits;
  };
  auto const measured = results(true);
  CHECK(algorithms().size() == 2);
  algorithms().save(path);
  algorithms().clear();
  algorithms().load(path);
  CHECK(algorithms().size() == 2);
  CHECK(results(false) == measured);
  CHECK(algorithms().size() == 2);

  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  auto const refusal = [&](std::string const& word, std::string const& other) {
    auto changed = text.str();
    auto const place = changed.find(word);
    REQUIRE(place != std::string::npos);
    changed.replace(place, word.size(), other);
    auto const copy = folder.path / "changed.txt";
    std::ofstream(copy) << changed;
    algorithms().clear();
    auto const error = error_of([&] { algorithms().load(copy); });
    CHECK(algorithms().size() == 0);
    return error;
  };
  auto const version = refusal("cublaslt ", "cublaslt 1");
  CHECK(version.code() == Errc::unsupported);
  CHECK(version.message().find("cuBLASLt 1") != std::string::npos);
  CHECK(refusal("device ", "device 1").code() == Errc::unsupported);
  CHECK(refusal("roundpipe", "squarepipe").code() == Errc::invalid_argument);
  CHECK(refusal("algorithm", "algorithms").code() == Errc::invalid_argument);
  CHECK(refusal("algorithm 0", "algorithm 7").code() == Errc::invalid_argument);
  CHECK(error_of([&] { algorithms().load(folder.path / "none.txt"); }).code() ==
        std::errc::no_such_file_or_directory);
  CHECK(error_of([&] { algorithms().save(folder.path / "none" / "none.txt"); }).code() ==
        std::errc::io_error);
}

TEST_CASE("a choice among loaded kernels does not wait for the caller's stream") {
  Setting const setting(true);
  Operands const o({72, 104, 88}, DType::bf16);
  DeviceValues const y({72, 88}, DType::bf16);
  setting.linear(o.e, y, o.x, o.weight, absent);  // the driver waits for the device to load kernels
  algorithms().clear();
  cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  roundpipe::test::Gate gate;
  gate.close(setting.stream);
  auto enqueued =
      std::async(std::launch::async, [&] { setting.linear(o.e, y, o.x, o.weight, absent); });
  bool const returned = enqueued.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  bool const blocked = !setting.stream.is_done();
  gate.open();
  enqueued.get();
  CHECK(returned);
  CHECK(blocked);
  CHECK(relative_error(y.values(), o.y(Values(size(72, 88)))) < tolerance(DType::bf16));
}

TEST_CASE("algorithms are measured within what a limit leaves of a device") {
  auto const resources = roundpipe::test::make_resources();
  auto& own = resources->get<cu::MatmulAlgorithms>();
  own.measure(true);
  auto const find = [&](std::int64_t k) {
    (void)own.find(DeviceId(0),
                   {.m = 2048,
                    .n = 2048,
                    .k = k,
                    .operands = DType::bf16,
                    .result = DType::bf16,
                    .transpose_b = true});
  };
  find(4096);  // loads what products of this kind need, whatever their size
  auto& limits = resources->get<cu::MemoryLimits>();
  auto const before = cu::held_bytes(DeviceId(0));
  for (Bytes const left : {1_GiB, 512_MiB, 0_MiB}) {  // whole operands would take 1.2 GB and more
    limits.set(DeviceId(0), before + left);
    examples::MemoryPeak memory({DeviceId(0)}, std::chrono::milliseconds(1));
    find(151'936 + static_cast<std::int64_t>(left >> 20) * 256);
    auto const taken = memory.bytes().front() - before;
    MESSAGE(taken << " bytes taken of " << left);
    CHECK(taken <= left + 32_MiB);           // kernels of candidates are loaded, too
    CHECK((taken > 256_MiB) == (left > 0));  // it measures where it may
  }
}

TEST_CASE("threads that use a new shape at once get one choice") {
  algorithms().clear();
  algorithms().measure(true);
  cu::MatmulProblem const problem{.m = 256,
                                  .n = 128,
                                  .k = 192,
                                  .operands = DType::bf16,
                                  .result = DType::bf16,
                                  .transpose_a = true};
  std::vector<std::shared_ptr<cu::MatmulPlan const>> plans(4);
  std::vector<std::thread> threads;
  for (auto& plan : plans) {
    threads.emplace_back([&] { plan = algorithms().find(DeviceId(0), problem); });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  for (auto const& plan : plans) {
    CHECK(plan == plans.front());
  }
  CHECK(algorithms().size() == 1);
}
