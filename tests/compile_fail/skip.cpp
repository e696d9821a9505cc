// SPDX-FileCopyrightText: 2026 The roundpipe authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Skip connections that nothing begins or ends, and layers that cannot lie in one.

#include <roundpipe/model/skip.hpp>

#include <roundpipe/backend/host_stream.hpp>
#include <roundpipe/optim/sgd.hpp>
#include <roundpipe/runtime/serial/serial_trainer.hpp>
#include <support/toy_skips.hpp>

namespace {

using namespace roundpipe;
using test::ToyDense;
using test::ToyJoin;
using test::ToyLoss;

#if defined(NOTHING_ENDS)
// expect-error NOTHING_ENDS: a skip connection has a layer that begins it, and one that ends it
auto const model = skip(fork(ToyDense{}));
#elif defined(NOTHING_BEGINS)
// expect-error NOTHING_BEGINS: stands inside of a skip\(\.\.\.\), whose tensor the layer reads
auto const model = Sequential{ToyDense{}, reads_skip(ToyJoin{}), ToyLoss{}};
#elif defined(REPEATED_END)
// expect-error REPEATED_END: one layer begins a skip connection, and one ends it
auto const model = skip(fork(ToyDense{}), repeat(2, ToyJoin{}));
#elif defined(MARKED_END)
// expect-error MARKED_END: neither is repeated, marked, or a skip connection
auto const model = skip(fork(ToyDense{}), reads_skip(ToyJoin{}));
#elif defined(CONNECTION_AS_END)
// expect-error CONNECTION_AS_END: neither is repeated, marked, or a skip connection
auto const model = skip(fork(ToyDense{}), skip(fork(ToyDense{}), ToyJoin{}));
#elif defined(READS_A_REPEAT)
// expect-error READS_A_REPEAT: reads_skip takes one layer: repeat\(n, reads_skip\(layer\)\)
auto const model = skip(fork(ToyDense{}), reads_skip(repeat(2, ToyJoin{})), ToyJoin{});
#elif defined(LOSS_INSIDE)
// expect-error LOSS_INSIDE: none of them can be a loss layer or have results
auto const model = skip(fork(ToyDense{}), ToyLoss{}, ToyJoin{});
#elif defined(NO_LAYER_INSIDE)
// expect-error NO_LAYER_INSIDE: a layer needs 'ParameterTable parameters\(\) const'
struct Wrong {};
auto const model = skip(fork(ToyDense{}), Wrong{}, ToyJoin{});
#elif defined(WRONG_CARRIES)
// expect-error WRONG_CARRIES: a layer's member 'carries' must be 'Carries carries\(\) const'
struct Wrong : ToyDense {
  int carries() const { return 1; }
};
using Trained = decltype(SerialTrainer{Sequential{Wrong{}, ToyLoss{}}, Sgd{}, SerialOptions{}});
#else
auto const model = skip(fork(ToyDense{}),
                        repeat(2, reads_skip(ToyJoin{})),
                        skip(fork(ToyDense{}), ToyJoin{}),
                        ToyJoin{});
#endif

}  // namespace
